/**
 * A small training to try `vitest-onnx converge` on: a multilayer perceptron learns a wavy
 * surface, by stochastic gradient descent with momentum. It has no dependencies, and is
 * deterministic: the same flags give the same log on every machine.
 *
 *   node train.mjs --steps 120 --save-every 30 --checkpoint-dir checkpoints
 *   node train.mjs --steps 40 --checkpoint checkpoints/model_30.json --start-step 30
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'

const LAYERS = [2, 24, 24, 1]
const EXAMPLES = 256

const { values: flags } = parseArgs({
  options: {
    lr: { type: 'string', default: '0.2' },
    momentum: { type: 'string', default: '0.9' },
    'batch-size': { type: 'string', default: '64' },
    seed: { type: 'string', default: '7' },
    /** The last step: the total, not the number still to do. */
    steps: { type: 'string', default: '120' },
    'steps-per-log': { type: 'string', default: '1' },
    'save-every': { type: 'string' },
    'checkpoint-dir': { type: 'string', default: 'checkpoints' },
    /** Goes on from this file, which ends the step given by --start-step. */
    checkpoint: { type: 'string' },
    'start-step': { type: 'string', default: '0' },
  },
})

train()

function train() {
  const settings = readSettings()
  const data = surface(settings.seed)
  const model = flags.checkpoint === undefined ? newModel(settings.seed) : load(flags.checkpoint)
  const first = Number(flags['start-step']) + 1

  if (first === 1 && settings.saveEvery > 0) save(model, 0)
  for (let step = first; step <= settings.steps; step++) {
    const batch = pickBatch(data, step, settings)
    const { loss, fit, gradients } = lossAndGradients(model, batch)
    descend(model, gradients, settings)
    if (step % settings.stepsPerLog === 0) log(step, loss, fit, settings.lr)
    if (settings.saveEvery > 0 && step % settings.saveEvery === 0) save(model, step)
  }
}

function readSettings() {
  return {
    lr: Number(flags.lr),
    momentum: Number(flags.momentum),
    batchSize: Number(flags['batch-size']),
    seed: Number(flags.seed),
    steps: Number(flags.steps),
    stepsPerLog: Number(flags['steps-per-log']),
    saveEvery: Number(flags['save-every'] ?? 0),
  }
}

function log(step, loss, fit, lr) {
  const numbers = `Loss: ${loss.toFixed(5)} Fit: ${fit.toFixed(4)}`
  console.log(`INFO Iteration: ${step} ${numbers} Learning Rate: ${lr}`)
}

/** Half the mean squared error of a batch, its R², and the gradient for every weight. */
function lossAndGradients(model, batch) {
  const gradients = model.layers.map(({ weights, biases }) => ({
    weights: weights.map(() => 0),
    biases: biases.map(() => 0),
  }))
  let squares = 0
  for (const { point, height } of batch) {
    const activations = forward(model, point)
    const error = activations.at(-1)[0] - height
    squares += error ** 2
    backward(model, activations, [error / batch.length], gradients)
  }
  return { loss: squares / batch.length / 2, fit: 1 - squares / spread(batch), gradients }
}

/** The squared error of a model that always answers with the mean. */
function spread(batch) {
  const mean = batch.reduce((sum, { height }) => sum + height, 0) / batch.length
  return batch.reduce((sum, { height }) => sum + (height - mean) ** 2, 0)
}

/** The values of every layer, the point itself first. */
function forward({ layers }, point) {
  const activations = [point]
  for (const [index, { weights, biases }] of layers.entries()) {
    const input = activations.at(-1)
    const isLast = index === layers.length - 1
    activations.push(
      biases.map((bias, unit) => {
        const sum = input.reduce(
          (total, value, from) => total + value * weights[unit * input.length + from],
          bias,
        )
        return isLast ? sum : Math.tanh(sum)
      }),
    )
  }
  return activations
}

function backward({ layers }, activations, outputErrors, gradients) {
  let errors = outputErrors
  for (let index = layers.length - 1; index >= 0; index--) {
    const input = activations[index]
    const { weights } = layers[index]
    const inputErrors = input.map(() => 0)
    for (const [unit, error] of errors.entries()) {
      gradients[index].biases[unit] += error
      for (const [from, value] of input.entries()) {
        gradients[index].weights[unit * input.length + from] += error * value
        inputErrors[from] += error * weights[unit * input.length + from]
      }
    }
    // The derivative of tanh, from its value.
    errors = inputErrors.map((error, from) => error * (1 - input[from] ** 2))
  }
}

function descend({ layers, velocities }, gradients, { lr, momentum }) {
  for (const [index, layer] of layers.entries()) {
    for (const kind of ['weights', 'biases']) {
      const velocity = velocities[index][kind]
      for (const [i, gradient] of gradients[index][kind].entries()) {
        velocity[i] = momentum * velocity[i] - lr * gradient
        layer[kind][i] += velocity[i]
      }
    }
  }
}

function newModel(seed) {
  const random = randomNumbers(seed)
  const layers = LAYERS.slice(1).map((units, index) => {
    const inputs = LAYERS[index]
    const range = Math.sqrt(6 / (inputs + units))
    const weights = Array.from({ length: units * inputs }, () => (random() * 2 - 1) * range)
    return { weights, biases: Array.from({ length: units }, () => 0) }
  })
  const velocities = layers.map(({ weights, biases }) => ({
    weights: weights.map(() => 0),
    biases: biases.map(() => 0),
  }))
  return { layers, velocities }
}

function surface(seed) {
  const random = randomNumbers(seed + 1)
  return Array.from({ length: EXAMPLES }, () => {
    const [x, y] = [random() * 2 - 1, random() * 2 - 1]
    const noise = (random() - 0.5) * 0.1
    return { point: [x, y], height: Math.sin(2.5 * x) * Math.cos(2.5 * y) + noise }
  })
}

/** The batch depends on the step alone, so that a resumed training sees what it would have seen. */
function pickBatch(data, step, { seed, batchSize }) {
  const random = randomNumbers(seed * 1_000_003 + step)
  return Array.from({ length: batchSize }, () => data[Math.floor(random() * data.length)])
}

/** mulberry32: small, fast, and the same everywhere. */
function randomNumbers(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}

function save(model, step) {
  const folder = flags['checkpoint-dir']
  mkdirSync(folder, { recursive: true })
  const file = path.join(folder, `model_${step}.json`)
  writeFileSync(file, JSON.stringify(model))
  console.log(`INFO Saving model to: ${file}`)
}

function load(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
