import './styles/index.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { mantineTheme } from './app/mantine'
import { queryClient } from './app/query'
import { router } from './app/router'
import { useTheme } from './app/theme'
import './ui/escape'

function Console() {
  const { scheme } = useTheme()
  // The style sheets hold all variables and classes: the provider writes no style element, which the security policy refuses.
  return (
    <MantineProvider theme={mantineTheme} forceColorScheme={scheme} withCssVariables={false} withGlobalClasses={false} deduplicateInlineStyles={false}>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  )
}

const root = document.getElementById('root')
if (!root) throw new Error('index.html has no #root')
createRoot(root).render(<StrictMode><Console /></StrictMode>)
