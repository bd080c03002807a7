export default (): void => undefined;
