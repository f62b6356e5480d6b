import { Menu } from '@mantine/core'
import { IconCheck, IconDots } from '@tabler/icons-react'
import { useQueryClient } from '@tanstack/react-query'
import { ask } from '../api/client'
import { asError } from '../api/error'
import { dropDrafts } from '../ui/drafts'
import { Face } from '../ui/face'
import { toast } from '../ui/toast'
import { useGo } from '../ui/url'
import { openHelp } from './overlays'
import { paths } from './paths'
import { useSession } from './session'
import { setTheme, useTheme, type Theme } from './theme'

const themes: readonly { value: Theme; label: string }[] = [
  { value: 'system', label: 'Colours of the system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
]

/** UserMenu: who is signed in, colours, account, sign out. */
export function UserMenu({ icons }: { icons: boolean }) {
  const session = useSession()
  const { theme } = useTheme()
  const go = useGo()
  const client = useQueryClient()
  const name = session.user.name || session.user.email
  const signOut = async () => {
    try {
      await ask('DELETE session')
    } catch (thrown) {
      const error = asError(thrown)
      if (!error.isSignedOut) { toast.show({ arch: 'shut', text: `Still signed in: ${error.message}` }); return }
    }
    dropDrafts()
    client.clear()
    window.location.assign('/admin/sign-in')
  }
  return (
    <Menu position="top-start" width={216}>
      <Menu.Target>
        <button type="button" className="who" aria-label={icons ? `${name}: colours and account` : undefined}>
          <Face name={name} />
          <span className="grow words"><b className="trunc">{name}</b><span className="muted trunc">{session.owner && !session.actingAs ? 'owner' : session.user.email}</span><span className="hidden-words">colours and account</span></span>
          <IconDots className="words" size={16} stroke={1.7} aria-hidden />
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        {icons && <Menu.Label>{name}</Menu.Label>}
        <Menu.Item onClick={() => { go(paths.account()) }}>Account and password</Menu.Item>
        <Menu.Item onClick={openHelp}>Keyboard shortcuts</Menu.Item>
        <Menu.Divider />
        <Menu.RadioGroup value={theme} onChange={(value) => { setTheme(value as Theme) }}>
          {themes.map((t) => <Menu.RadioItem key={t.value} value={t.value} closeMenuOnClick={false} checkIcon={<IconCheck size={14} stroke={1.7} aria-hidden />}>{t.label}</Menu.RadioItem>)}
        </Menu.RadioGroup>
        <Menu.Divider />
        <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
