package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"sync"
	"syscall"
	"time"

	"gatehouse/bench/contact"
)

// fillQueried provisions the installation and makes n records by batches. Those of the viewer
// who sees few lie at even distances.
func (g *instance) fillQueried(ctx context.Context, n int) (*dataset, error) {
	g.queried = true
	if err := g.apply(ctx, false); err != nil {
		return nil, err
	}
	keys, err := g.keys(ctx, bulk, owning)
	if err != nil {
		return nil, err
	}
	s, err := g.serve(ctx, anyCore)
	if err != nil {
		return nil, err
	}
	defer s.stop(syscall.SIGTERM)
	began := time.Now()
	if err := createBatches(ctx, s, keys, n); err != nil {
		return nil, err
	}
	took := time.Since(began)
	log.Printf("%s: %d records made in %s, %.0f/s", g.name, n, took.Round(time.Millisecond), float64(n)/took.Seconds())
	if g.settle != nil {
		if err := g.settle(ctx); err != nil {
			return nil, err
		}
	}
	return &dataset{instance: g, n: n, keys: keys}, nil
}

// createBatches makes the records with a few clients at once.
func createBatches(ctx context.Context, s *server, keys map[string]string, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	distance := max(1, n/visible)
	firsts := make(chan int)
	var group sync.WaitGroup
	for range batchClients {
		group.Go(func() {
			for first := range firsts {
				owned := make(map[string][]map[string]any)
				for i := range min(batchItems, n-first) {
					owner := bulk
					if (first+i)%distance == 1 {
						owner = owning
					}
					owned[owner] = append(owned[owner], contact.Queried(first+i))
				}
				for owner, records := range owned {
					if err := createBatch(ctx, s, keys[owner], records); err != nil {
						cancel(fmt.Errorf("records from %d on: %w", first, err))
					}
				}
			}
		})
	}
	for first := 0; first < n && ctx.Err() == nil; first += batchItems {
		select {
		case firsts <- first:
		case <-ctx.Done():
		}
	}
	close(firsts)
	group.Wait()
	return context.Cause(ctx)
}

// createBatch makes records with one request. A batch that was refused because the machine is
// busy has done nothing and is sent again, a few times.
func createBatch(ctx context.Context, s *server, token string, records []map[string]any) error {
	const tries = 5
	for try := 1; ; try++ {
		status, answer, err := post(ctx, s.base+contacts+"/batch", token, gatehouseBatch(records))
		if err != nil || status == http.StatusOK {
			return err
		}
		if status != http.StatusServiceUnavailable || try == tries {
			return fmt.Errorf("batch: status %d: %s", status, answer)
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}
