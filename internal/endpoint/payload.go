package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"gatehouse/internal/admission"
	"gatehouse/internal/inputs"
	"gatehouse/internal/tenant"
)

// delivery is what is stored of a failed delivery, packed and sealed.
type delivery struct {
	Inputs inputs.Object `json:"inputs"`
	Event  event         `json:"event"`
}

const (
	// payloadPurpose is the purpose that deliveries are sealed for.
	payloadPurpose = "failed delivery"
	// packedFrom is from how many bytes a delivery is compressed.
	packedFrom = 4 << 10
	// maxPacked bounds what is kept of one (contract X8): one row is written in one turn, which
	// other tenants' writes wait for.
	maxPacked = 2 << 20
	// maxUnpacked bounds what a packed delivery may claim to be: more than any body.
	maxUnpacked = 64 << 20
	// maxPackWait bounds the wait for a turn to pack, which the caller of the run waits for, too.
	maxPackWait = 2 * time.Second
)

// pack gives a run what is needed to run its failed delivery again, unless that is too large
// to be kept; then the run's error says so.
func (s *Service) pack(r *Run, d *delivery) {
	size := 0
	for i := range d.Inputs {
		size += len(d.Inputs[i].Name) + len(d.Inputs[i].Value)
	}
	if size >= admission.Heavy {
		ctx, cancel := context.WithTimeout(context.Background(), maxPackWait) // its caller may have hung up
		defer cancel()
		work, _ := s.engine.Cores().Start(ctx, string(r.tenant)) // without a turn in time it is done without
		defer work.Stop()
	}
	text := bytes.Buffer{}
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // <, > and & are six bytes each otherwise: more than a component takes, of HTML
	_ = encoder.Encode(d)        // cannot fail: plain texts and checked JSON
	if r.payload = packed(text.Bytes()); len(r.payload) > maxPacked {
		r.payload = nil
		r.Error += fmt.Sprintf("\nwhat was delivered, %d bytes, is too large to be kept, and cannot be run again from here", size)
	}
}

// packed compresses the JSON of a delivery if that is worth it.
func packed(text []byte) []byte {
	if len(text) < packedFrom {
		return text
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are wrong
	}
	defer z.Close()
	return z.EncodeAll(text, nil)
}

// failedDelivery returns a run and what is needed to run its failed delivery again. Its errors
// are those of Retry. However many ask at once, few unpack: a body takes several times its
// size meanwhile.
func (s *Service) failedDelivery(ctx context.Context, tenantID tenant.ID, id string) (*Run, *delivery, error) {
	run, text, err := s.store.failedDelivery(ctx, tenantID, id)
	if err != nil {
		return nil, nil, err
	}
	work, err := s.engine.Cores().Start(ctx, string(tenantID))
	if err != nil {
		return nil, nil, err
	}
	defer work.Stop()
	d, err := unpacked(text)
	return run, d, err
}

// unpacked is the inverse of packed. What was kept by earlier versions is not packed: JSON
// begins with a brace, and what is packed does not.
func unpacked(b []byte) (*delivery, error) {
	if len(b) == 0 || b[0] != '{' {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
		if err != nil {
			panic(err) // the options are wrong
		}
		defer z.Close()
		if b, err = z.DecodeAll(b, nil); err != nil {
			return nil, fmt.Errorf("unpack a failed delivery: %w", err)
		}
	}
	d := &delivery{}
	return d, json.Unmarshal(b, d)
}
