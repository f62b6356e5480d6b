const firstRow = (page) => page.locator('[role=grid] tbody tr[role=row]').first().click()
const run = async (page) => { await page.getByRole('button', { name: /^Run/ }).first().click(); await page.getByRole('region', { name: 'Result of the run' }).waitFor() }

/** Build: entities, components, flows, events, and their drawers and dialogs. */
export default () => [
  { name: 'entity', path: '/build/entities/opportunity' },
  { name: 'entity field', path: '/build/entities/opportunity?field=stage' },
  { name: 'entity edited', path: '/build/entities/contact', prepare: async (page) => {
    await page.getByRole('button', { name: 'Add field' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('birthday')
  } },
  { name: 'new entity', path: '/build/entities', prepare: async (page) => { await page.getByRole('button', { name: /New entity|Add entity/ }).first().click() } },
  { name: 'component', path: '/build/components/quote', prepare: run },
  { name: 'component inputs', path: '/build/components/quote?tab=io' },
  { name: 'component runs', path: '/build/components/quote?tab=runs' },
  { name: 'component used by', path: '/build/components/quote?tab=uses' },
  { name: 'component history', path: '/build/components/quote?tab=history' },
  { name: 'new component', path: '/build/components?new=1' },
  { name: 'component delete', path: '/build/components/quote', prepare: async (page) => { await page.getByRole('button', { name: 'Delete' }).click(); await page.getByRole('dialog').waitFor() } },
  { name: 'modules', path: '/build/modules' },
  { name: 'new module', path: '/build/modules?new=1' },
  { name: 'module', path: '/build/modules/pricing' },
  { name: 'module imported by', path: '/build/modules/pricing?tab=uses' },
  { name: 'module delete', path: '/build/modules/pricing', prepare: async (page) => { await page.getByRole('button', { name: 'Delete' }).click(); await page.getByRole('dialog').waitFor() } },
  { name: 'automation', path: '/build/automations/web_lead', prepare: async (page) => { await page.getByRole('button', { name: /^http\.request trigger/ }).waitFor() } },
  { name: 'automation run', path: '/build/automations/web_lead', prepare: async (page) => { await page.getByRole('button', { name: 'Older' }).click(); await page.getByRole('table', { name: 'Steps of the run' }).waitFor() } },
  { name: 'automation step', path: '/build/automations/web_lead?step=nodes%5B1%5D.then%5B0%5D' },
  { name: 'automation yaml', path: '/build/automations/web_lead?tab=yaml' },
  { name: 'automation inputs', path: '/build/automations/web_lead?tab=io' },
  { name: 'automation runs', path: '/build/automations/web_lead?tab=runs' },
  { name: 'automation new', path: '/build/automations/welcome?new=1' },
  { name: 'event', path: '/build/events', prepare: firstRow },
  { name: 'runs', path: '/build/runs' },
  { name: 'run', path: '/build/runs', prepare: firstRow },
  { name: 'verifier', path: '/build/verifier', prepare: async (page) => {
    await page.getByRole('button', { name: 'Sign a sample delivery' }).click()
    await page.getByRole('button', { name: 'Test the delivery' }).click()
    await page.getByTestId('verdict').waitFor()
  } },
  { name: 'gone module', path: '/build/modules/nothing_here' },
  { name: 'gone component', path: '/build/components/nothing_here' },
  { name: 'gone automation', path: '/build/automations/nothing_here' },
  { name: 'gone entity', path: '/build/entities/nothing_here' },
]
