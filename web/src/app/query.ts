import { QueryClient } from '@tanstack/react-query'
import { asError } from '../api/error'

/** Reads are tried again when the server did not answer or was overloaded; a refusal is final. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: true,
      retry: (count, thrown) => {
        const error = asError(thrown)
        return count < 2 && (error.isOffline || error.status === 503)
      },
      retryDelay: (count, thrown) => Math.min(10_000, (asError(thrown).retryAfter ?? 2 ** count) * 1000),
    },
    mutations: { retry: false },
  },
})
