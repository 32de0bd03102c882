/** The numbers that numpy and onnx computed: `vectors/<name>.json`, made by `vectors/make.py`. */
import { readFileSync } from 'node:fs'

export function readVectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`vectors/${name}.json`, import.meta.url), 'utf8')) as T
}

/** Base64 to bytes in a buffer of their own, as little as possible like a file read at an odd offset. */
export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(Buffer.from(base64, 'base64'))
}
