import { useCallback } from 'react'
import { useMutation, type DefaultError, type UseMutationOptions } from '@tanstack/react-query'

/** What follows a mutation. stayed is whether the page is still the one that began it: who has left is not led anywhere. */
export interface Then<D, E> { onSuccess?: (data: D, stayed: boolean) => void; onError?: (error: E) => void }

/**
 * useLasting is useMutation whose mutate does what follows in any case. What the mutation loads anew may draw another component in the place of
 * the one that began it, and with that useMutation's own mutate forgets what was to follow: a save would look like somebody else's.
 */
export function useLasting<D, E = DefaultError, V = void>(options: UseMutationOptions<D, E, V>) {
  const mutation = useMutation<D, E, V>(options)
  const { mutateAsync } = mutation
  const mutate = useCallback((variables: V, then: Then<D, E> = {}) => {
    const from = location.pathname
    mutateAsync(variables).then((data) => { then.onSuccess?.(data, location.pathname === from) }, (error: unknown) => { then.onError?.(error as E) })
  }, [mutateAsync])
  return { ...mutation, mutate }
}
