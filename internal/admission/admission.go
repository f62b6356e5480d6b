// Package admission shares resources fairly between keys, which are the ids of
// tenants wherever tenants share a resource (contract B1). However much one key
// asks for, another does not wait behind all of it.
//
// A Queue orders waiting items in turns by key. A Gate bounds how many run at
// once, a Budget how many bytes are held, and Cores how many compute at once. A
// KeyedMutex lets the callers of a key follow one another.
// They return errors and false, never a fault: the caller decides what to answer.
package admission

import "errors"

// ErrFull is returned by Gate.Enter if too many callers wait already, or if the
// caller has waited for Limits.MaxWait, and by KeyedMutex.Lock if too many wait.
var ErrFull = errors.New("admission: full")
