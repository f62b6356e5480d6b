package audit

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)

const oneRecord = `{"data":{"id":"0193a1b2-0000-7000-8000-000000000000","owner_id":"0193a1b2-0000-7000-8000-000000000001",` +
	`"created_at":"2026-11-21T05:38:08.123456Z","updated_at":"2026-11-21T05:38:08.123456Z","first_name":"Ana",` +
	`"last_name":"Albrecht","email":"Ana.Albrecht.12@example.com","phone":"+49 30 1234567","city":"Hamburg",` +
	`"stage":"contacted","score":512,"subscribed":true,"notes":"met at the spring fair, asked for the price list; ` +
	`prefers to be called in the morning"},"meta":{}}`

// readOne is what the server makes of one read with an API key.
func readOne() *Event {
	return &Event{
		Tenant: "acme", RequestID: "0193a1b2-0000-7000-8000-00000000abcd", Method: "GET",
		Path:  "/public/v1/data/contact/0193a1b2-0000-7000-8000-000000000000",
		Route: "GET /public/v1/data/{entity}/{id}", Endpoint: "/data/contact", Status: 200,
		Start: noon, Duration: 87 * time.Microsecond, IP: "203.0.113.7", Auth: credential.APIKey,
		UserID: "0193a1b2-0000-7000-8000-000000000001", APIKeyID: "0193a1b2-0000-7000-8000-0000000000ff", APIKeyPrefix: "svc_api_1234",
		RequestHeader: http.Header{
			"Authorization": {"Bearer " + "svc_api_" + strings.Repeat("0f", 32)}, "User-Agent": {"curl/8.5.0"},
			"Accept": {"*/*"}, "X-Forwarded-For": {"198.51.100.4"}, "Accept-Encoding": {"gzip"},
		},
		ResponseBody: []byte(oneRecord), ResponseContentType: "application/json", Class: Standard, Persist: true,
	}
}

func BenchmarkLine(b *testing.B) {
	l := NewRequestLog(io.Discard, clock.System())
	ev := readOne()
	b.ReportAllocs()
	for b.Loop() {
		l.Line(ev)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkEncode(b *testing.B) {
	list := `{"data":[` + strings.Repeat(oneRecord+",", 49) + oneRecord + `],"meta":{}}`
	secret := strings.Replace(oneRecord, `"phone"`, `"password"`, 1)
	for name, body := range map[string]string{"one": oneRecord, "list": list, "secret": secret} {
		b.Run(name, func(b *testing.B) {
			ev := readOne()
			ev.ResponseBody = []byte(body)
			ev.Rendered = true
			var enc encoder
			b.ReportAllocs()
			for b.Loop() {
				enc.encode(ev)
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	r := newRecorder(&memory{}, clock.System(), Options{})
	ev := readOne()
	ev.Persist = false
	b.ReportAllocs()
	for b.Loop() {
		r.Record(ev)
	}
	_ = r.Close(b.Context())
}

func BenchmarkAppendLine(b *testing.B) {
	ev := readOne()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendLine(buf[:0], ev)
	}
}

func BenchmarkSuspicious(b *testing.B) {
	body := []byte(strings.Repeat(oneRecord, 50))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if suspicious(body) {
			b.Fatal("suspicious")
		}
	}
}
