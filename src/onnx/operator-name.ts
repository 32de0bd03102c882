/** What an operator is called: `Conv` in the default domain, `domain.Op` elsewhere. */
import type { NodeEntry } from './model-index.ts'

export function qualifiedName({ domain, opType }: Pick<NodeEntry, 'domain' | 'opType'>): string {
  return domain === '' || domain === 'ai.onnx' ? opType : `${domain}.${opType}`
}
