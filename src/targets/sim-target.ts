/** The simulated accelerator: the graph rewritten for a chip, run on onnxruntime's CPU provider. */
import { bytesSource } from '../bytes/byte-source.ts'
import { parseSimChip, DEFAULT_CHIPS, type SimChip, simChip } from './sim/chip.ts'
import { compileForSim } from './sim/compile.ts'
import { loadOrtArtefact, type OrtArtefact, ortVersion } from './ort-target.ts'
import type { Chip, Target } from './target.ts'

/** Raise when the same model and chip are rewritten in another way. */
const REVISION = 1

export const simTarget: Target = {
  name: 'sim',
  version: () => `${REVISION} on ${ortVersion()}`,
  chips: DEFAULT_CHIPS as unknown as readonly Chip[],
  async compile(model, chip): Promise<OrtArtefact> {
    const checked = chipOf(chip)
    const ranges = checked.storage === 'int8' ? await model.ranges() : {}
    const { bytes } = compileForSim(bytesSource(model.bytes, model.name), checked, ranges)
    return {
      model: { bytes, folder: model.folder },
      settings: { providers: ['cpu'], optimisation: 'disabled' },
      outputs: model.outputs,
    }
  },
  load: (artefact, context) => loadOrtArtefact(artefact as OrtArtefact, context),
}

function chipOf(chip: Chip): SimChip {
  const known = simChip.safeParse(chip)
  return known.success ? known.data : parseSimChip(JSON.stringify(chip), `${chip.name}.json`)
}
