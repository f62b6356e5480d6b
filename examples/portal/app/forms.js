// Forms: they are checked before they are sent, and what is wrong stands at its input, whoever found it.

let ids = 0

// onSubmit calls send with the form's values (trimmed, but for passwords) when they pass the form's own rules. What send
// throws is shown in the form: a GatehouseError's fields at their inputs, all else in the form's alert. explain may turn
// an error into {message, fields} of its own; null leaves it out.
export function onSubmit(form, send, explain = () => undefined) {
  form.noValidate = true // the browser's bubbles vanish and are not read out by all screen readers
  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    if (form.ariaBusy === "true") return
    clearErrors(form)
    const wrong = check(form)
    if (Object.keys(wrong).length > 0) return showErrors(form, {fields: wrong})
    form.ariaBusy = "true"
    try {
      await send(values(form))
    } catch (error) {
      const shown = explain(error)
      if (shown !== null) showErrors(form, shown ?? {message: words(error), fields: error.fields})
    } finally {
      form.ariaBusy = "false"
    }
  })
}

// values are the form's values by name.
export function values(form) {
  const entries = inputs(form).map((input) => [input.name, input.type === "password" ? input.value : input.value.trim()])
  return Object.fromEntries(entries)
}

// fill puts values into a form's inputs.
export function fill(form, record) {
  for (const input of inputs(form)) {
    if (input.name in record) input.value = record[input.name] ?? ""
  }
}

// words is what people are told of an error: what is the matter, and what to do next.
export function words(error) {
  const later = error.retryAfter > 0 ? `in ${duration(error.retryAfter)}` : "later"
  if (error.code === "NETWORK") return "We cannot reach the service. Check your connection and try again."
  if (error.status === 429) return `That is too much at once. Please try again ${later}.`
  if (error.status === 503) return `We cannot do that right now. Please try again ${later}.`
  if (error.status >= 500) return `Something went wrong on our side. Please try again; if it stays so, write to us and quote ${error.requestId || error.status}.`
  return sentence(error.message)
}

// sentence makes one of the service's messages, which begin in lower case.
export function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(first) ? first : first + "."
}

function duration(seconds) {
  if (seconds === 1) return "a second"
  if (seconds < 90) return `${seconds} seconds`
  return `${Math.ceil(seconds / 60)} minutes`
}

function inputs(form) {
  return [...form.elements].filter((element) => element.name && !element.readOnly)
}

// check is what is wrong by the inputs' own rules. A password has data-longest and no maxlength: that would cut off what a
// password manager pastes, without a word.
function check(form) {
  const wrong = {}
  for (const input of inputs(form)) {
    const length = [...input.value].length
    if (input.required && input.value.trim() === "") wrong[input.name] = "Please fill this in."
    else if (input.validity.typeMismatch) wrong[input.name] = "This is not an e-mail address."
    else if (input.minLength > 0 && length < input.minLength) wrong[input.name] = `Please use at least ${input.minLength} characters.`
    else if (length > Number(input.dataset.longest ?? length)) wrong[input.name] = `Please use at most ${input.dataset.longest} characters.`
  }
  return wrong
}

export function clearErrors(form) {
  form.querySelector("[role=alert]").textContent = ""
  for (const input of form.querySelectorAll("[aria-invalid]")) markValid(input)
}

// showErrors puts each field's message below its input and leads to the first; what has no input goes to the alert.
export function showErrors(form, {message = "", fields = {}}) {
  let first
  const left = []
  for (const [name, reason] of Object.entries(fields)) {
    const input = inputs(form).find((one) => one.name === name)
    if (input === undefined) {
      left.push(`${name}: ${reason}`)
      continue
    }
    markInvalid(input, sentence(reason))
    first ??= input
  }
  if (first === undefined || left.length > 0) form.querySelector("[role=alert]").textContent = [message, ...left].join(" ")
  first?.focus()
}

function markInvalid(input, reason) {
  const error = document.createElement("p")
  error.className = "error"
  error.id = `error-${++ids}`
  error.textContent = reason
  input.dataset.hint ??= input.getAttribute("aria-describedby") ?? ""
  input.setAttribute("aria-invalid", "true")
  input.setAttribute("aria-describedby", `${input.dataset.hint} ${error.id}`.trim())
  input.closest(".field").append(error)
  input.addEventListener("input", () => markValid(input), {once: true}) // it is being put right
}

function markValid(input) {
  input.closest(".field").querySelector(".error")?.remove()
  input.removeAttribute("aria-invalid")
  if (input.dataset.hint) input.setAttribute("aria-describedby", input.dataset.hint)
  else input.removeAttribute("aria-describedby")
}
