package mailtest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gatehouse/internal/mail"
	"gatehouse/internal/mail/mailtest"
)

// TestOutbox reads mails that the product has written: with HTML, and with none.
func TestOutbox(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "outbox")
	if letters, err := mailtest.Letters(dir); err != nil || len(letters) != 0 {
		t.Fatalf("before there is a folder: %v, %v", letters, err)
	}
	to := mail.Files(dir)
	var want []mailtest.Letter
	send := func(m mail.Message) {
		t.Helper()
		m.From = "Acme <no-reply@acme.example>"
		if err := to.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want = append(want, mailtest.Letter{To: m.To, Subject: m.Subject, Text: m.Text, HTML: m.HTML})
	}
	send(mail.Message{To: "eva@customer.example", Subject: "Grüße = ünïcode", Text: "Open https://acme.example/verify?token=a=b\r\n", HTML: "<p>Grüße</p>\r\n"})
	time.Sleep(2 * time.Microsecond) // names begin with the time in microseconds
	send(mail.Message{To: "ned@customer.example", Subject: "Plain", Text: "No HTML\r\n"})
	got, err := mailtest.Letters(dir)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}

	ask := func(query string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		mailtest.Serve(dir).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+query, http.NoBody))
		return rec
	}
	for _, n := range []string{"", "0", "-1", "x"} {
		if rec := ask("to=ned@customer.example&n=" + n); rec.Code != http.StatusBadRequest {
			t.Errorf("n=%s: %d %s", n, rec.Code, rec.Body)
		}
	}
	asked, late := make(chan struct{}), make(chan *httptest.ResponseRecorder)
	go func() {
		close(asked)
		late <- ask("to=ned@customer.example&n=2") // waits for it
	}()
	<-asked
	send(mail.Message{To: "eva@customer.example", Subject: "Another's", Text: "x\r\n"})
	send(mail.Message{To: "ned@customer.example", Subject: "Second", Text: "x\r\n"})
	var l mailtest.Letter
	if rec := <-late; rec.Code != http.StatusOK || json.Unmarshal(rec.Body.Bytes(), &l) != nil || l != want[3] {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}

	if err := os.WriteFile(filepath.Join(dir, "00.eml"), []byte("no mail"), 0o600); err != nil {
		t.Fatal(err)
	}
	if rec := ask("to=ned@customer.example&n=1"); rec.Code != http.StatusInternalServerError {
		t.Errorf("a file that is no mail: %d %s", rec.Code, rec.Body)
	}
}
