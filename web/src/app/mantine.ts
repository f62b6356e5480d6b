import { createTheme } from '@mantine/core'

/** Mantine is used for what is hard to do well (menus, popovers, comboboxes, dialogs); its looks come from styles/mantine.css. */
export const mantineTheme = createTheme({
  primaryColor: 'verdigris',
  primaryShade: { light: 7, dark: 3 },
  autoContrast: false,
  fontFamily: 'var(--font)',
  fontFamilyMonospace: 'var(--mono)',
  defaultRadius: 'sm',
  respectReducedMotion: true,
  focusRing: 'auto',
  cursorType: 'pointer',
  colors: {
    verdigris: ['#eefaf7', '#e0f4ef', '#aae2d5', '#6ccfbd', '#4ab3a2', '#2e9686', '#177e71', '#01685d', '#00564c', '#003f38'],
  },
  components: {
    Menu: { defaultProps: { withInitialFocusPlaceholder: false, shadow: 'none', transitionProps: { duration: 0 }, offset: 4, withinPortal: true } },
    Popover: { defaultProps: { shadow: 'none', transitionProps: { duration: 0 }, offset: 4 } },
    Tooltip: { defaultProps: { transitionProps: { duration: 0 }, openDelay: 300, withArrow: false } },
    Combobox: { defaultProps: { shadow: 'none', transitionProps: { duration: 0 }, offset: 4 } },
    Select: { defaultProps: { withCheckIcon: false, comboboxProps: { transitionProps: { duration: 0 }, offset: 4 } } },
    MultiSelect: { defaultProps: { withCheckIcon: true, comboboxProps: { transitionProps: { duration: 0 }, offset: 4 } } },
  },
})
