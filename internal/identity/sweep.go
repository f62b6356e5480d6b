package identity

import (
	"context"
	"time"
)

// sweepEvery is how often tokens that have long expired are deleted.
const sweepEvery = time.Hour

// sweeper deletes what has long expired, in the background. Nodes that do so at
// once get in nobody's way.
type sweeper struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func startSweeper(s *Service) *sweeper {
	ctx, cancel := context.WithCancel(context.Background())
	w := &sweeper{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		if err := s.tellClashes(ctx); err != nil && ctx.Err() == nil {
			s.emit("identity.sweep_failed", map[string]any{"error": err.Error()})
		}
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
				s.emit("identity.sweep_failed", map[string]any{"error": err.Error()})
			}
		}
	}()
	return w
}

func (w *sweeper) close(ctx context.Context) error {
	w.cancel()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sweep deletes what has long expired, of every tenant.
func (s *Service) sweep(ctx context.Context) error {
	list, err := s.store.tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenantID := range list {
		if err := s.store.sweep(ctx, tenantID); err != nil {
			return err
		}
	}
	return nil
}

// tellClashes tells the operator of accounts whose address is another account's
// too, in another form.
func (s *Service) tellClashes(ctx context.Context) error {
	list, err := s.store.tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenantID := range list {
		clashes, err := s.store.clashes(ctx, tenantID)
		if err != nil {
			return err
		}
		for _, ids := range clashes {
			for _, id := range ids {
				s.emit("identity.email_clash", map[string]any{"tenant": tenantID, "user_id": id})
			}
		}
	}
	return nil
}
