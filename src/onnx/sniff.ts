/** What a file is when it is not an ONNX model: the first bytes -> an error that says so, or nothing. */
import type { ByteSource } from '../bytes/byte-source.ts'
import { ModelTestError } from '../errors.ts'

/** Throws when the content is recognisably something else than an ONNX model. */
export function checkLooksLikeOnnx(source: ByteSource): void {
  const head = Buffer.from(source.read(0, Math.min(HEAD_BYTES, source.size)))
  const known = IMPOSTORS.find(({ is }) => is(head, source.size))
  if (known === undefined) return
  throw new ModelTestError('NOT_ONNX', known.what, { file: source.name, offset: 0, hint: known.hint })
}

const HEAD_BYTES = 256

interface Impostor {
  readonly is: (head: Buffer, size: number) => boolean
  readonly what: string
  readonly hint: string
}

const IMPOSTORS: readonly Impostor[] = [
  {
    is: (head) => head.length === 0,
    what: 'the file is empty',
    hint: 'Download or export the model again.',
  },
  {
    is: (head) => startsWith(head, 'version https://git-lfs'),
    what: 'this is a Git LFS pointer, not the model itself',
    hint: 'Run `git lfs pull` in the repository the file came from.',
  },
  {
    is: (head) => /^(\xef\xbb\xbf)?\s*<(!doctype|html|\?xml)/i.test(head.toString('latin1')),
    what: 'this is an HTML or XML page, not a model',
    hint: 'The download link led to a web page; fetch the raw file.',
  },
  {
    is: (head) => startsWith(head, 'PK\u0003\u0004'),
    what: 'this is a zip archive (a PyTorch checkpoint or a packed model), not an ONNX file',
    hint: 'Unpack it, or export the model to ONNX.',
  },
  {
    is: (head) => head[0] === 0x1f && head[1] === 0x8b,
    what: 'this is gzip-compressed data',
    hint: 'Unpack it with `gunzip` or `tar -xzf`.',
  },
  {
    is: (head) => head.subarray(4, 8).toString('latin1') === 'ORTM',
    what: "this is a model in onnxruntime's own ORT format",
    hint: 'Use the .onnx file that it was converted from.',
  },
  {
    is: (head) => /^\s*(ir_version|graph|producer_name)\s*[:{]/.test(head.toString('latin1')),
    what: 'this is a model in protobuf text format',
    hint: 'Convert it to binary: onnx.save(onnx.load(path, format="textproto"), "model.onnx").',
  },
  {
    is: (head, size) => size <= HEAD_BYTES && /^[\x20-\x7e\r\n\t]+$/.test(head.toString('latin1')),
    what: 'this is a short text, not a model (a symbolic link checked out as a file looks like this)',
    hint: 'Check how the file was copied; with Git, set core.symlinks=true and check it out again.',
  },
]

function startsWith(head: Buffer, text: string): boolean {
  return head.subarray(0, text.length).toString('latin1') === text
}
