import { describe, expect, it } from 'vitest'
import { changeWords, errorsWords, shareWords, slowerWords } from './words'

describe('the words of the overview', () => {
  it('compares with before', () => {
    expect([changeWords(112, 100), changeWords(90, 100), changeWords(0, 0), changeWords(3, 0)]).toEqual(['12 % more than before', '10 % fewer than before', 'unchanged', 'none before'])
    expect([slowerWords(64, 45), slowerWords(64, 63), slowerWords(40, 80)]).toEqual([{ words: '19 ms slower', slow: true }, { words: 'unchanged', slow: false }, { words: '40 ms faster', slow: false }])
  })
  it('says how many errors', () => {
    expect([shareWords(0, 10), shareWords(772, 184_212), shareWords(1, 1_000_000)]).toEqual(['0', '0.42', 'under 0.01'])
    expect(errorsWords({ requests: 9, errors: 3, failed: 0, limited: 0, p50Ms: 0, p95Ms: 0 })).toBe('3, none of them 5xx')
  })
})
