// The views of what a company shares: the list of its orders, and one order with its lines. Whose they are the service
// decides, at each request; this page keeps nothing of the company but what it shows. Every text goes into the page as text.

import {clearErrors, fill, onSubmit, words} from "./forms.js"

const pageSize = 10
const statuses = {received: "Received", in_work: "In work", shipped: "Shipped"} // of the service; none yet is new
const date = new Intl.DateTimeFormat(undefined, {dateStyle: "medium"})
const euros = new Intl.NumberFormat(undefined, {style: "currency", currency: "EUR"})

const part = (element, name) => element.querySelector(`[data-is="${name}"]`)
const button = (element, name) => element.querySelector(`[data-do="${name}"]`)
const copy = (template) => document.getElementById(template).content.firstElementChild.cloneNode(true)

export class Orders {
  #api
  #list // the view of all
  #one // the view of one
  #form
  #say
  #show
  #unavailable
  #order = null // the one that is shown
  #ids = new Set() // of the orders in the list
  #cursor = null
  #visit = 0 // raised whenever the views are emptied: what was asked for before that is not shown any more

  // show(name) shows a view again, with the heading that it has by then.
  constructor(api, {list, one}, {say, show, unavailable}) {
    this.#api = api
    this.#list = list
    this.#one = one
    this.#form = one.querySelector("form")
    this.#say = say
    this.#show = show
    this.#unavailable = unavailable
    button(list, "refresh").addEventListener("click", () => this.#refresh())
    button(list, "more").addEventListener("click", () => this.#more())
    onSubmit(this.#form, (fields) => this.#save(fields), (error) => this.#explain(error))
  }

  // open shows the newest page. Whether the customer has a company is asked for each time: staff give and take it, and no
  // new login is needed for either. It gives true when the page is shown.
  async open() {
    this.clear()
    const visit = this.#visit
    const refresh = button(this.#list, "refresh")
    refresh.disabled = true
    try {
      const [{customFields}, page] = await Promise.all([this.#api.profile(), this.#api.list("order", {limit: pageSize})])
      if (visit !== this.#visit) return false
      this.#take(page)
      const none = this.#ids.size === 0
      part(this.#list, "no-company").hidden = !none || customFields.account !== null
      part(this.#list, "empty").hidden = !none || customFields.account === null
      return true
    } catch (error) {
      if (visit === this.#visit && error.code !== "LOGGED_OUT") this.#unavailable(error)
      return false
    } finally {
      if (visit === this.#visit) refresh.disabled = false
    }
  }

  async #refresh() {
    if (await this.open()) this.#say("Up to date.")
  }

  // openOne shows the order with that id, once it is there; what was shown stays till then. An order that the customer may
  // not see is answered like one that does not exist.
  async openOne(id) {
    const visit = ++this.#visit
    try {
      const [me, order, lines] = await Promise.all([this.#api.me(), this.#api.get("order", id), this.#lines(id)])
      if (visit !== this.#visit) return
      this.clear()
      this.#form.hidden = !me.abilities.some(({action, subject}) => action === "update" && subject === "order")
      this.#write(order)
      fill(this.#form, order)
      this.#writeLines(lines)
      this.#show("order")
    } catch (error) {
      if (visit !== this.#visit || error.code === "LOGGED_OUT") return
      this.clear()
      if (error.status === 404) this.#show("no-order")
      else this.#unavailable(error)
    }
  }

  // clear forgets everything: the next one at this page may be somebody else.
  clear() {
    this.#visit++
    this.#ids.clear()
    this.#cursor = null
    part(this.#list, "list").replaceChildren()
    part(this.#list, "problem").textContent = ""
    for (const name of ["empty", "no-company"]) part(this.#list, name).hidden = true
    button(this.#list, "more").hidden = true
    button(this.#list, "refresh").disabled = false
    this.#order = null
    for (const name of ["status", "created", "total"]) part(this.#one, name).textContent = ""
    part(this.#one, "number").textContent = "Order"
    this.#one.querySelector("tbody").replaceChildren()
    part(this.#one, "lines").hidden = true
    this.#form.hidden = true
    this.#form.reset()
    clearErrors(this.#form)
  }

  async #more() {
    const visit = this.#visit
    const more = button(this.#list, "more")
    more.disabled = true
    try {
      const page = await this.#api.list("order", {limit: pageSize, cursor: this.#cursor})
      if (visit !== this.#visit) return
      const added = this.#take(page)
      this.#say(added.length === 0 ? "These are all." : added.length === 1 ? "One more order." : `${added.length} more orders.`)
      const next = added[0] ?? part(this.#list, "list").lastElementChild // the button may be gone
      next?.querySelector("a").focus()
    } catch (error) {
      if (visit === this.#visit && error.code !== "LOGGED_OUT") part(this.#list, "problem").textContent = words(error)
    } finally {
      more.disabled = false
    }
  }

  // #take adds a page to the list and gives back the elements that are new.
  #take({records, nextCursor}) {
    const added = records.filter(({id}) => !this.#ids.has(id)).map((order) => {
      const element = copy("order-entry")
      const link = part(element, "number")
      link.textContent = order.number
      link.href = `#/orders/${order.id}`
      badge(element, order)
      written(element, order)
      part(element, "reference").textContent = order.reference ? ` · ${order.reference}` : ""
      part(this.#list, "list").append(element)
      this.#ids.add(order.id)
      return element
    })
    this.#cursor = nextCursor
    button(this.#list, "more").hidden = nextCursor === null
    return added
  }

  // #lines are all lines of an order, in the order in which they were written.
  async #lines(order) {
    const lines = []
    let cursor
    do {
      const page = await this.#api.list("order_line", {limit: 200, cursor, filter: {order}})
      lines.push(...page.records)
      cursor = page.nextCursor
    } while (cursor !== null)
    return lines.sort((a, b) => (a.created_at < b.created_at ? -1 : 1))
  }

  #write(order) {
    this.#order = order
    part(this.#one, "number").textContent = `Order ${order.number}`
    badge(this.#one, order)
    written(this.#one, order)
  }

  #writeLines(lines) {
    const rows = lines.map(({item, quantity, price}) => {
      const row = copy("order-line")
      part(row, "item").textContent = item
      part(row, "quantity").textContent = quantity
      part(row, "price").textContent = euros.format(price)
      return row
    })
    this.#one.querySelector("tbody").replaceChildren(...rows)
    part(this.#one, "total").textContent = euros.format(lines.reduce((sum, {quantity, price}) => sum + quantity * price, 0))
    part(this.#one, "lines").hidden = lines.length === 0
  }

  // #save sends what was changed and nothing else, so that what a colleague changes at the same time stays. The answer has
  // theirs too.
  async #save(fields) {
    const visit = this.#visit
    const changed = Object.entries(fields).map(([name, value]) => [name, value || null]).filter(([name, value]) => value !== this.#order[name])
    if (changed.length === 0) return this.#say("There is nothing to save.")
    const order = await this.#api.update("order", this.#order.id, Object.fromEntries(changed))
    this.#say("Saved. Your colleagues see it too.")
    if (visit !== this.#visit) return
    this.#write(order)
    fill(this.#form, order)
  }

  #explain(error) {
    if (error.code === "LOGGED_OUT") return null
    if (error.status === 404) return {message: "This order is not open to you any more, and nothing was saved. Copy what you want to keep."}
    return undefined
  }
}

function badge(element, {status}) {
  const shown = part(element, "status")
  shown.textContent = statuses[status] ?? "New"
  shown.dataset.status = status ?? "new"
}

function written(element, {created_at: at}) {
  const shown = part(element, "created")
  shown.dateTime = at
  shown.textContent = date.format(new Date(at))
}
