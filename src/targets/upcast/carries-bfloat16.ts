/** Whether a model has a bfloat16 value anywhere: then it is tested up-cast, all of it. */
import type { TypeTable } from '../../graph/infer-types.ts'
import type { ModelIndex } from '../../onnx/model-index.ts'
import { functionsHaveBfloat16 } from './upcast-model.ts'
import { NARROW } from './upcast-tensor.ts'

export function carriesBfloat16(model: ModelIndex, types: TypeTable): boolean {
  const known = remembered.get(types)
  if (known !== undefined) return known
  const carries = hasNarrowValue(types) || functionsHaveBfloat16(model)
  remembered.set(types, carries)
  return carries
}

/** Asked for every layer of a model. */
const remembered = new WeakMap<TypeTable, boolean>()

function hasNarrowValue(types: TypeTable): boolean {
  for (const type of types.values()) if (type.kind === 'tensor' && type.dataType === NARROW) return true
  return false
}
