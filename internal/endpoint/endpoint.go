package endpoint

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/secret"
	"gatehouse/internal/user"
)

// Service runs the targets of custom endpoints. It is safe for concurrent use.
// Close must be called when it is no longer used.
type Service struct {
	store      store
	dir        *access.Directory
	records    *records.Store
	engine     *component.Engine
	budget     *admission.Budget
	keyring    *secret.Keyring
	cursors    httpapi.Cursors
	clock      clock.Clock
	emit       func(event string, fields map[string]any)
	programs   *programs
	deliveries admission.KeyedMutex // lets one delivery of a key run at a time
	locks      recordLocks
	flows      *admission.Gate // admits flows
	running    atomic.Int64    // runs that are being done
	verifiers  verifierGates   // admits verifications of deliveries
	history    *history
	repeats    *repeats
	tries      *tries

	mu     sync.Mutex
	logged map[string]time.Time // when logRejection last wrote a line, by event and endpoint
}

// Options configure a Service; all but Budget must be set.
type Options struct {
	Directory *access.Directory
	Records   *records.Store
	Engine    *component.Engine
	// Budget bounds what all runs and answers hold together; nil means no
	// bound.
	Budget  *admission.Budget
	Keyring *secret.Keyring
	Clock   clock.Clock
	// Emit writes an event to the log.
	Emit func(event string, fields map[string]any)
}

func newService(st store, o Options) *Service {
	s := &Service{
		store: st, dir: o.Directory, records: o.Records, engine: o.Engine, budget: o.Budget, keyring: o.Keyring, clock: o.Clock, emit: o.Emit,
		programs: newPrograms(o.Engine, o.Keyring), flows: admission.NewGate(o.Engine.Limits()), logged: map[string]time.Time{},
	}
	if o.Keyring != nil {
		s.cursors = httpapi.NewCursors(o.Keyring.Derive("cursor of the administration", 32))
	}
	s.history, s.repeats, s.tries = newHistory(st, o.Emit), newRepeats(st, o.Emit), newTries(o.Clock)
	return s
}

// Close writes the runs that are queued. It returns an error when ctx ends before
// all are written; the others are lost.
func (s *Service) Close(ctx context.Context) error {
	return errors.Join(s.history.close(ctx), s.repeats.close(ctx))
}

// Stats counts what a Service did since it was created.
type Stats struct {
	Runs       map[string]int64 // by status
	Duplicates int64            // deliveries that had been processed before
	Running    int              // runs that are being done
	Waiting    int              // runs that are queued to be written
	// FlowsRunning and FlowsWaiting count the flows that run and that wait for a
	// place; the others, components.
	FlowsRunning, FlowsWaiting           int
	ComponentsRunning, ComponentsWaiting int
}

// Stats returns the current counts.
func (s *Service) Stats() Stats {
	st := s.history.stats()
	st.Running = int(s.running.Load())
	st.FlowsRunning, st.FlowsWaiting = s.flows.Running(), s.flows.Waiting()
	st.ComponentsRunning, st.ComponentsWaiting = s.engine.Running(), s.engine.Waiting()
	return st
}

// MayDefine checks whether a viewer may define an endpoint, component or
// automation that runs with the rights of others (contract A13). The tenant owner
// may define anything. Any other user needs manage_endpoints; run_as and
// specific_user (userIDs) may then name only that user, and execution_context
// system needs all_entity_access. It returns FORBIDDEN otherwise.
func MayDefine(viewer access.Viewer, userIDs []user.ID, system bool) error {
	if viewer.TenantOwner() {
		return nil
	}
	if !viewer.May(access.ManageEndpoints) {
		return fault.New(fault.Forbidden, "defining endpoints needs the permission %s", access.ManageEndpoints)
	}
	for _, id := range userIDs {
		if id != viewer.UserID() {
			return fault.New(fault.Forbidden, "only the tenant's owner may let an endpoint run as another user")
		}
	}
	if system && !viewer.AllEntityAccess() {
		return fault.New(fault.Forbidden, "only a user with all_entity_access may define what runs with execution_context system")
	}
	return nil
}
