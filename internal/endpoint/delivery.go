package endpoint

import (
	"cmp"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/wtf8"
)

// event is one delivery to a webhook.
type event struct {
	ID         string // given by this service: the receipt's event_id
	Kind       string // the provider's eventKind; "" in token mode
	ProviderID string // the provider's event id; "" in token mode
	// KeyHash is the hash of the deduplication key, "" for a delivery that is
	// always new.
	KeyHash string
}

// keptEvent is an event as it is stored to be run again. The provider's texts are
// WTF-8, which encoding/json would change.
type keptEvent struct {
	ID, KeyHash      string
	Kind, ProviderID jsontext.Value
}

// MarshalJSON writes the event without loss.
func (e event) MarshalJSON() ([]byte, error) {
	return json.Marshal(keptEvent{e.ID, e.KeyHash, wtf8.AppendQuote(nil, e.Kind), wtf8.AppendQuote(nil, e.ProviderID)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *event) UnmarshalJSON(text []byte) (err error) {
	var k keptEvent
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	e.ID, e.KeyHash = k.ID, k.KeyHash
	if e.Kind, err = wtf8.Unquote(k.Kind); err == nil {
		e.ProviderID, err = wtf8.Unquote(k.ProviderID)
	}
	return err
}

// shownID returns the event's id as a target sees it: the provider's if there is
// one (contract W11).
func (e *event) shownID() string { return cmp.Or(e.ProviderID, e.ID) }
