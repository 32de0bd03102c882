/** A TypeProto in which tensors of bfloat16, at whatever depth, are tensors of float32. */
import type { ByteSource } from '../../bytes/byte-source.ts'
import { VARINT, WireReader } from '../../bytes/wire-reader.ts'
import { MessageWriter } from '../../bytes/wire-writer.ts'
import { TENSOR_TYPE, TYPE } from '../../onnx/fields.ts'
import type { Range } from '../../onnx/model-index.ts'
import { NARROW, WIDE } from './upcast-tensor.ts'

/** The index has checked how deep types go. */
export function upcastType(source: ByteSource, { start, stop }: Range, note: () => void): MessageWriter {
  const message = new MessageWriter()
  const reader = new WireReader(source).seek(start)
  while (reader.next(stop)) {
    const inner = { start: reader.start, stop: reader.stop }
    const element = ELEMENT_FIELDS.get(reader.field)
    if (reader.field === TYPE.tensor || reader.field === TYPE.sparse)
      message.messageField(reader.field, upcastTensorType(source, inner, note))
    else if (element !== undefined)
      message.messageField(reader.field, upcastElement(source, inner, element, note))
    else message.slice({ source, start: reader.fieldStart, stop: reader.stop })
  }
  return message
}

/** Where a type of containers has the type of what it holds. */
const ELEMENT_FIELDS = new Map<number, number>([
  [TYPE.sequence, 1],
  [TYPE.optional, 1],
  [TYPE.map, 2],
])

function upcastElement(
  source: ByteSource,
  { start, stop }: Range,
  element: number,
  note: () => void,
): MessageWriter {
  const message = new MessageWriter()
  const reader = new WireReader(source).seek(start)
  while (reader.next(stop)) {
    const inner = { start: reader.start, stop: reader.stop }
    if (reader.field === element) message.messageField(element, upcastType(source, inner, note))
    else message.slice({ source, start: reader.fieldStart, stop: reader.stop })
  }
  return message
}

function upcastTensorType(source: ByteSource, { start, stop }: Range, note: () => void): MessageWriter {
  const message = new MessageWriter()
  const reader = new WireReader(source).seek(start)
  while (reader.next(stop)) {
    const isNarrow =
      reader.field === TENSOR_TYPE.elemType && reader.wireType === VARINT && reader.number === NARROW
    if (isNarrow) {
      message.varintField(TENSOR_TYPE.elemType, WIDE)
      note()
    } else message.slice({ source, start: reader.fieldStart, stop: reader.stop })
  }
  return message
}
