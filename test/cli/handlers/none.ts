export const something = "else";
