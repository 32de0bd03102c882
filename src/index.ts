export { ModelTestError, type ErrorCode } from './errors.ts'
