throw new Error("the module itself is broken");
