/** Pages of signing in and of one's own account. bare ones are looked at without a session. */
export default () => [
  { name: 'account', path: '/account' },
  { name: 'sign-in', path: '/sign-in', bare: true },
  { name: 'forgot', path: '/forgot', bare: true },
  { name: 'reset-password', path: '/reset-password?token=x', bare: true },
]
