import { describe, expect, test } from 'vitest'
import { parseTolerance } from '../../src/compare/parse-tolerance.ts'
import { DEFAULT_TOLERANCE, NAMED_TOLERANCES, TOLERANCE_NAMES } from '../../src/compare/tolerance.ts'

describe('a written tolerance', () => {
  test.each<[unknown, object]>([
    [0.02, { fpMaxTol: 0.02 }],
    ['0.02', { fpMaxTol: 0.02 }],
    ['1e-3', { fpMaxTol: 1e-3 }],
    ['default', {}],
    [{}, {}],
    ['fp_max_tol=0.05,allowed_wrong=0.001', { fpMaxTol: 0.05, allowedWrong: 0.001 }],
    [' fpMaxTol = 0.05 , skip_nan_check=true ', { fpMaxTol: 0.05, skipNanCheck: true }],
    ['0.02,int_tol=3', { fpMaxTol: 0.02, intTol: 3 }],
    [
      { int_tol: 0, allow_all_zero: true },
      { intTol: 0, allowAllZero: true },
    ],
    [
      { rtol: 1e-3, atol: 1e-7, min_top1: 0.99, maxUlp: 4 },
      { rtol: 1e-3, atol: 1e-7, minTop1: 0.99, maxUlp: 4 },
    ],
    ['min_top1=1', { minTop1: 1 }],
  ])('%j', (written, changes) => {
    expect(parseTolerance(written)).toEqual({ ...DEFAULT_TOLERANCE, ...changes })
  })

  test.each(TOLERANCE_NAMES)('%s is the named one', (name) => {
    expect(parseTolerance(name)).toEqual(NAMED_TOLERANCES[name])
    expect(parseTolerance({ like: name })).toEqual(NAMED_TOLERANCES[name])
    expect(parseTolerance(`${name},allowed_wrong=0.5`)).toEqual({
      ...NAMED_TOLERANCES[name],
      allowedWrong: 0.5,
    })
  })

  test('starts from the base', () => {
    const base = { ...DEFAULT_TOLERANCE, intTol: 7, rtol: 0.1 }
    expect(parseTolerance({ allowed_wrong: 0.1 }, { base })).toEqual({ ...base, allowedWrong: 0.1 })
    expect(parseTolerance('exact', { base })).toEqual(NAMED_TOLERANCES.exact)
  })

  test('with fp_max_tol alone is judged by it', () => {
    expect(parseTolerance('fp16,fp_max_tol=0.05')).not.toHaveProperty('rtol')
    expect(parseTolerance({ like: 'fp16', fp_max_tol: 0.05, atol: 1 })).toMatchObject({
      fpMaxTol: 0.05,
      atol: 1,
    })
  })

  test.each<[unknown, RegExp]>([
    ['fp17', /T: "fp17" is no name of a tolerance/],
    ['', /T: "" has an empty part/],
    ['0.1,', /T: "0.1," has an empty part/],
    ['fp_max_tl=0.05', /T: "fp_max_tl" is no field/],
    ['fp_max_tol=', /T: "fp_max_tol=" is no field=value/],
    ['fp_max_tol=1=2', /is no field=value/],
    ['fp_max_tol=high', /T: fp_max_tol "high" is refused: it must be a number from 0 on/],
    ['fp16,0.1', /is no field=value/],
    [-0.1, /T: fp_max_tol -0.1 is refused: it must be a number from 0 on/],
    [NaN, /fp_max_tol NaN is refused/],
    [{ allowed_wrong: 2 }, /allowed_wrong 2 is refused: it must be a number from 0 to 1/],
    [{ allow_all_zero: 1 }, /allow_all_zero 1 is refused: it must be true or false/],
    [{ like: 'loose' }, /"loose" is no name/],
    [[1], /\[1\] is no tolerance/],
    [null, /null is no tolerance/],
    [undefined, /undefined is no tolerance/],
  ])('%j is refused', (written, message) => {
    expect(() => parseTolerance(written, { what: 'T' })).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringMatching(message),
        hint: expect.stringMatching(/very-approximate.*fp_max_tol.*min_top1/s),
      }),
    )
  })
})
