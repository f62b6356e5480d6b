package component_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"gatehouse/internal/component"
)

// stripeEvent returns an event of about n bytes as a payment provider sends it: an
// invoice with many lines.
func stripeEvent(n int) []byte {
	lines := []any{}
	for size := 0; size < n; {
		i := len(lines)
		line := map[string]any{
			"id": fmt.Sprintf("il_1N%012d", i), "object": "line_item", "amount": 4200 + i, "currency": "eur", "description": "Pumpe für Gärten, 1 × monthly",
			"discountable": true, "discounts": []any{}, "livemode": false, "metadata": map[string]any{"order": fmt.Sprintf("A-%d", i), "note": "a \"quoted\" word"},
			"period": map[string]any{"end": 1700000000 + i, "start": 1690000000}, "price": map[string]any{"id": "price_1N", "unit_amount_decimal": "4200.5", "tiers_mode": nil},
			"proration": false, "quantity": 1, "tax_rates": []any{0.19, 0.07}, "type": "subscription",
		}
		b, _ := json.Marshal(line)
		size += len(b)
		lines = append(lines, line)
	}
	event := map[string]any{"id": "evt_1N", "object": "event", "type": "invoice.paid", "data": map[string]any{"object": map[string]any{"id": "in_1N", "lines": lines}}}
	b, _ := json.Marshal(event)
	return b
}

// BenchmarkLargeVerifier measures a valid delivery of 1 MB. It raises the limit of
// verifiers, so that it works on a busy machine, too.
func BenchmarkLargeVerifier(b *testing.B) {
	in := stripeEvent(1 << 20)
	bench(b, compile(b, verifierSource), component.Run{Tenant: "t", Verifier: verifierInput(in), Timeout: 10 * time.Second})
}

// BenchmarkLargeParts measures the same up to each of its steps.
func BenchmarkLargeParts(b *testing.B) {
	in := stripeEvent(1 << 20)
	for name, source := range map[string]string{
		"0 nothing": `export default () => 1`, "1 hmac": `export default ({rawBody, config}) => hmacSha256(config.webhook_secret, '1700000000.' + rawBody)`,
		"2 parse": `export default ({rawBody}) => JSON.parse(rawBody).id`, "3 parse, stringify": `export default ({rawBody}) => JSON.stringify(JSON.parse(rawBody)).length`,
		"4 parse, return": `export default ({rawBody}) => JSON.parse(rawBody)`,
	} {
		p := compile(b, source)
		b.Run(name, func(b *testing.B) {
			bench(b, p, component.Run{Tenant: "t", Verifier: verifierInput(in), Timeout: 10 * time.Second})
		})
	}
}
