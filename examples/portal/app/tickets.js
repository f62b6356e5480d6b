// The view of the records: a list that grows by pages, and a form that makes and edits them in place. Every text goes into
// the page as text; nothing is ever inserted as HTML.

import {fill, onSubmit, words} from "./forms.js"

const pageSize = 10
const statuses = {in_progress: "In progress", ready: "Ready to collect", closed: "Closed"} // of the service; none yet is new
const priorities = {low: "low priority", normal: "normal priority", high: "high priority"}
const when = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "short"})

const part = (element, name) => element.querySelector(`[data-is="${name}"]`)
const button = (element, name) => element.querySelector(`[data-do="${name}"]`)
const copy = (template) => document.getElementById(template).content.firstElementChild.cloneNode(true)

export class Tickets {
  #api
  #view
  #say
  #unavailable
  #rows = new Map() // by id: {ticket, element}
  #cursor = null
  #mayDelete = false
  #visit = 0 // raised whenever the view is emptied: what was asked for before that is not shown any more

  constructor(api, view, {say, unavailable}) {
    this.#api = api
    this.#view = view
    this.#say = say
    this.#unavailable = unavailable
    button(view, "new").addEventListener("click", () => this.#openNew())
    button(view, "more").addEventListener("click", () => this.#more())
  }

  // open shows the newest page. What the user may do is asked for, not assumed: the service refuses it anyway.
  async open() {
    this.clear()
    const visit = this.#visit
    try {
      const [me, page] = await Promise.all([this.#api.me(), this.#api.list("ticket", {limit: pageSize})])
      if (visit !== this.#visit) return
      this.#mayDelete = me.abilities.some(({action, subject}) => action === "delete" && subject === "ticket")
      this.#take(page)
    } catch (error) {
      if (visit === this.#visit && error.code !== "LOGGED_OUT") this.#unavailable(error)
    }
  }

  // clear forgets everything: the next one at this page may be somebody else.
  clear() {
    this.#visit++
    const dialog = document.querySelector("dialog")
    dialog.close() // as "no"
    part(dialog, "what").textContent = ""
    this.#rows.clear()
    this.#cursor = null
    part(this.#view, "list").replaceChildren()
    part(this.#view, "new-ticket").replaceChildren()
    part(this.#view, "problem").textContent = ""
    part(this.#view, "empty").hidden = true
    button(this.#view, "more").hidden = true
    button(this.#view, "new").hidden = false
  }

  async #more() {
    const visit = this.#visit
    const more = button(this.#view, "more")
    more.disabled = true
    try {
      const page = await this.#api.list("ticket", {limit: pageSize, cursor: this.#cursor})
      if (visit !== this.#visit) return
      const added = this.#take(page)
      this.#say(added.length === 0 ? "These are all." : added.length === 1 ? "One more ticket." : `${added.length} more tickets.`)
      const next = added[0] ?? part(this.#view, "list").lastElementChild // the button may be gone
      if (next) part(next, "title").focus()
    } catch (error) {
      if (visit === this.#visit) this.#problem(error)
    } finally {
      more.disabled = false
    }
  }

  // #take shows a page and gives back the elements that are new. Tickets that were made after the first page was read come
  // on a later one: so each is put where it belongs, and those that this page has made itself are known already.
  #take({records, nextCursor}) {
    const added = records.filter(({id}) => !this.#rows.has(id)).map((ticket) => this.#insert(ticket))
    this.#cursor = nextCursor
    button(this.#view, "more").hidden = nextCursor === null
    part(this.#view, "empty").hidden = this.#rows.size > 0
    return added
  }

  #insert(ticket) {
    const element = copy("ticket")
    const row = {ticket, element}
    const after = [...this.#rows.values()].filter((one) => one.ticket.created_at < ticket.created_at)
    after.sort((a, b) => (a.ticket.created_at < b.ticket.created_at ? 1 : -1))
    part(this.#view, "list").insertBefore(element, after[0]?.element ?? null)
    this.#rows.set(ticket.id, row)
    button(element, "edit").addEventListener("click", () => this.#edit(row))
    button(element, "delete").addEventListener("click", () => this.#delete(row))
    this.#write(row)
    return element
  }

  // #write brings an element up to its ticket.
  #write({ticket, element}) {
    part(element, "title").textContent = ticket.title
    const badge = part(element, "status")
    badge.textContent = statuses[ticket.status] ?? "New"
    badge.dataset.status = ticket.status ?? "new"
    const created = part(element, "created")
    created.dateTime = ticket.created_at
    created.textContent = when.format(new Date(ticket.created_at))
    part(element, "priority").textContent = ticket.priority ? ` · ${priorities[ticket.priority]}` : ""
    part(element, "description").textContent = ticket.description ?? ""
    part(element, "description").hidden = !ticket.description
    part(element, "answer").textContent = ticket.answer ?? ""
    part(element, "answered").hidden = !ticket.answer
    button(element, "edit").setAttribute("aria-label", `Edit ${ticket.title}`)
    button(element, "delete").setAttribute("aria-label", `Delete ${ticket.title}`)
    button(element, "delete").hidden = !this.#mayDelete
  }

  #openNew() {
    const place = part(this.#view, "new-ticket")
    const opener = button(this.#view, "new")
    const close = () => {
      place.replaceChildren()
      opener.hidden = false
    }
    const form = this.#form({title: "", description: "", priority: "normal"}, {
      send: async (fields) => {
        const ticket = await this.#api.create("ticket", fields)
        this.#say("Your ticket is with us.")
        if (form.isConnected) close()
        if (this.#rows.has(ticket.id)) return // the list was opened again meanwhile
        part(this.#view, "empty").hidden = true
        part(this.#insert(ticket), "title").focus()
      },
      // When the answer was lost, nobody here knows whether there is a ticket; a second press would make a second one.
      explain: (error) => (error.code === "NETWORK" ? {message: "The connection broke off, and your ticket may have reached us. Look in a second tab before you send it again."} : undefined),
      cancel: () => {
        close()
        opener.focus()
      },
    })
    form.setAttribute("aria-label", "New ticket")
    form.className = "card"
    part(form, "status").remove()
    opener.hidden = true
    place.replaceChildren(form)
    form.elements.title.focus()
  }

  // #edit puts a form in the place of the ticket's text. Only what was changed is sent, so that what somebody else changes
  // at the same time stays.
  #edit(row) {
    const {ticket, element} = row
    const text = element.querySelector(".ticket-shown")
    const close = () => {
      form.remove()
      text.hidden = false
      button(element, "edit").focus()
    }
    const form = this.#form(ticket, {
      send: async (fields) => {
        const changed = Object.entries(fields).filter(([name, value]) => value !== row.ticket[name])
        if (changed.length > 0) {
          row.ticket = await this.#api.update("ticket", ticket.id, Object.fromEntries(changed))
          this.#write(row)
          this.#say("Saved.")
        }
        close()
      },
      explain: (error) => (error.status === 404 ? {message: "This ticket is gone: it was deleted in the meantime. Copy what you want to keep, and make a new one."} : undefined),
      cancel: close,
    })
    form.setAttribute("aria-label", `Edit ${ticket.title}`)
    part(form, "status").textContent = `Status: ${statuses[ticket.status] ?? "New"}. We change it as we work on it.`
    text.hidden = true
    element.append(form)
    form.elements.title.focus()
  }

  #form(ticket, {send, explain, cancel}) {
    const form = copy("ticket-form")
    fill(form, {...ticket, priority: ticket.priority ?? "normal"})
    onSubmit(form, ({title, description, priority}) => send({title, description: description || null, priority}),
      (error) => (error.code === "LOGGED_OUT" ? null : explain(error)))
    const leave = () => {
      if (form.ariaBusy !== "true") cancel() // what is on its way cannot be called back
    }
    button(form, "cancel").addEventListener("click", leave)
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave()
    })
    return form
  }

  async #delete({ticket, element}) {
    const visit = this.#visit
    const dialog = document.querySelector("dialog")
    part(dialog, "what").textContent = `“${ticket.title}” will be gone for good.`
    dialog.returnValue = "no"
    dialog.showModal()
    await new Promise((resolve) => dialog.addEventListener("close", resolve, {once: true}))
    if (dialog.returnValue !== "yes" || visit !== this.#visit) return
    const asked = button(element, "delete")
    asked.disabled = true
    try {
      await this.#api.delete("ticket", ticket.id)
    } catch (error) {
      if (error.status !== 404) { // 404: it is gone already
        asked.disabled = false
        if (visit === this.#visit) this.#problem(error)
        return
      }
    }
    if (visit !== this.#visit) return
    const next = element.nextElementSibling ?? element.previousElementSibling
    element.remove()
    this.#rows.delete(ticket.id)
    part(this.#view, "empty").hidden = this.#rows.size > 0 || this.#cursor !== null
    this.#say("Deleted.")
    if (next) part(next, "title").focus()
    else button(this.#view, "new").focus()
  }

  #problem(error) {
    if (error.code !== "LOGGED_OUT") part(this.#view, "problem").textContent = words(error)
  }
}
