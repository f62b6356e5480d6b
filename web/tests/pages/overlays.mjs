/** What lies over every page. */
export default () => [
  { name: 'palette', path: '/settings/api-keys', prepare: async (page) => { await page.keyboard.press('Control+k'); await page.getByRole('dialog').waitFor(); await page.keyboard.type('con'); await page.getByRole('option').first().waitFor() } },
  { name: 'help', path: '/settings/roles', prepare: async (page) => { await page.getByRole('button', { name: 'Help and keyboard shortcuts' }).click(); await page.getByRole('dialog').waitFor() } },
  { name: 'no such page', path: '/no/such/page' },
  { name: 'session ended', path: '/users', prepare: async (page) => {
    await page.route('**/admin/v1/users**', (route) => route.fulfill({ status: 401, contentType: 'application/json', body: '{"error":{"code":"UNAUTHORIZED","message":"the session has ended","details":{}}}' }))
    await page.reload()
    await page.getByRole('dialog').waitFor()
    await page.unroute('**/admin/v1/users**')
  } },
]
