/** Which folder the cache is in: what the environment says, or the place that Node's tools agree on. */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

export function cacheFolder(
  from: string = process.cwd(),
  named: string | undefined = process.env['ONNX_TEST_CACHE_DIR'],
): string {
  if (named !== undefined && named !== '') return resolve(from, named)
  return join(packageFolder(from), 'node_modules', '.cache', 'vitest-onnx')
}

/** The nearest folder above with a package.json; without one, the folder itself. */
function packageFolder(from: string): string {
  for (let at = resolve(from); ; at = dirname(at)) {
    if (existsSync(join(at, 'package.json'))) return at
    if (dirname(at) === at) return resolve(from)
  }
}
