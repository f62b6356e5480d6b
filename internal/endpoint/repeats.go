package endpoint

import (
	"context"
	"fmt"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/background"
	"gatehouse/internal/tenant"
)

// repeat is a delivery that came again after its event had been processed.
type repeat struct {
	tenant  tenant.ID
	eventID string
	at      int64 // microseconds
}

// repeated is how often an event's delivery came again, and when it last did.
type repeated struct {
	times, last int64
}

const (
	// maxRepeatBytes bounds what the repeats that are queued take in memory; no
	// tenant has more of it than it leaves free.
	maxRepeatBytes = 4 << 20
	repeatBytes    = 256 // of one
	maxRepeatBatch = 1_000
	flushRepeats   = 250 * time.Millisecond
)

// repeatStore adds repeats of one tenant's events, all or none.
type repeatStore interface {
	addRepeats(ctx context.Context, tenant tenant.ID, byEvent map[string]repeated) error
}

// repeats counts repeated deliveries in the background. The counts are for
// people to read: one may be lost with the process.
type repeats struct {
	store repeatStore
	emit  func(string, map[string]any)
	queue *background.Batcher[repeat]
	held  *admission.Budget // by tenant
}

func newRepeats(st repeatStore, emit func(string, map[string]any)) *repeats {
	r := &repeats{store: st, emit: emit, held: admission.NewBudget(maxRepeatBytes)}
	r.queue = background.NewBatcher(background.Bounds{Age: flushRepeats, Full: maxRepeatBatch}, r.flush)
	return r
}

// add counts one. It is not counted while too many of its tenant wait.
func (r *repeats) add(one repeat) {
	if !r.held.Take(string(one.tenant), repeatBytes) {
		return
	}
	r.queue.Append(func(batch []repeat) []repeat { return append(batch, one) })
}

func (r *repeats) flush(_ context.Context, batch []repeat) {
	byTenant := map[tenant.ID]map[string]repeated{}
	for _, one := range batch {
		byEvent := byTenant[one.tenant]
		if byEvent == nil {
			byEvent = map[string]repeated{}
			byTenant[one.tenant] = byEvent
		}
		is := byEvent[one.eventID]
		byEvent[one.eventID] = repeated{is.times + 1, max(is.last, one.at)}
	}
	for tenant, byEvent := range byTenant {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := r.store.addRepeats(ctx, tenant, byEvent); err != nil {
			r.emit("event.repeats_not_counted", map[string]any{"tenant": tenant, "events": len(byEvent), "reason": err.Error()})
		}
		cancel()
	}
	for _, one := range batch {
		r.held.Release(string(one.tenant), repeatBytes)
	}
}

// close writes what is queued, until ctx ends.
func (r *repeats) close(ctx context.Context) error {
	if err := r.queue.Close(ctx); err != nil {
		return fmt.Errorf("repeated deliveries that were not counted yet are not: %w", err)
	}
	return nil
}
