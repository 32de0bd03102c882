/**
 * The models of a folder -> what the names of their tests start with.
 *
 * It is the file name without `.onnx`. `model.onnx` says nothing, so it takes the name of its
 * folder, and if that is `onnx`, as exporters write it, of the folder above. Where models would
 * still have one name, each gets the folders that tell it from the others in front, with `-` between;
 * where even the whole path does not help, a digest of it behind.
 */
import { createHash } from 'node:crypto'

/** `top`: the name of the folder itself; `hasDataSets`: whether a folder, relative to it, has data sets. */
export function modelNames(
  ids: readonly string[],
  top: string,
  hasDataSets: (folder: string) => boolean,
): Map<string, string> {
  const drafts = ids.map((id): Draft => ({
    id,
    words: wordsOf(id, top, hasDataSets),
    depth: 1,
    digits: 0,
  }))
  for (let clashing = clashes(drafts); clashing.length > 0; clashing = clashes(drafts))
    for (const group of clashing) tellApart(group)
  return new Map(drafts.map((draft) => [draft.id, nameOf(draft)]))
}

interface Draft {
  readonly id: string
  /** What may stand in the name, the outermost folder first. */
  words: readonly string[]
  /** How many of them do. */
  depth: number
  /** How many of the digest's do. */
  digits: number
}

function clashes(drafts: readonly Draft[]): Draft[][] {
  const groups = new Map<string, Draft[]>()
  for (const draft of drafts) {
    const name = nameOf(draft)
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [draft])
    else group.push(draft)
  }
  return [...groups.values()].filter(({ length }) => length > 1)
}

/** Who has no more folders keeps the name, if the others have; `model` is the last word to be added. */
function tellApart(group: readonly Draft[]): void {
  const open = group.filter(({ depth, words }) => depth < words.length)
  const short = group.filter(({ id, words }) => words.length < pathOf(id).length)
  if (open.length > 0) for (const draft of open) draft.depth++
  else if (short.length > 0)
    for (const draft of short) {
      draft.words = pathOf(draft.id)
      draft.depth = draft.words.length
    }
  else for (const draft of group) draft.digits += 6
}

function pathOf(id: string): string[] {
  return id.replace(/\.onnx$/i, '').split('/')
}

function wordsOf(id: string, top: string, hasDataSets: (folder: string) => boolean): string[] {
  const path = pathOf(id)
  const [folders, stem] = [path.slice(0, -1), path.at(-1)!]
  if (stem !== 'model') return path
  if (folders.length === 0) return [hasDataSets('.') ? top : stem]
  const isExport = folders.at(-1) === 'onnx' && folders.length > 1 && !hasDataSets(folders.join('/'))
  return isExport ? folders.slice(0, -1) : folders
}

function nameOf({ id, words, depth, digits }: Draft): string {
  const name = cleanName(words.slice(-depth).join('-'))
  return digits === 0 ? name : `${name}~${digest(id).slice(0, digits)}`
}

/** Names stand in lists whose fields are parted by blanks, and in terminals. */
function cleanName(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const clean = text.replaceAll(/[\s\u0000-\u001f\u007f-\u009f]/g, '_')
  return clean === '' ? '_' : clean
}

function digest(id: string): string {
  return createHash('sha256').update(id).digest('hex')
}
