package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// TestShedLoginsAreChargedToNobody: in a storm of logins some are shed with
// OVERLOADED. Only the others count against their address, and an account with
// only shed attempts is not blocked.
func TestShedLoginsAreChargedToNobody(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	const limit = 5000
	w.Apply(strings.NewReplacer("login_per_ip_per_minute: 100000", fmt.Sprint("login_per_ip_per_minute: ", limit)).Replace(portal))
	member(t, w, "eva@customer.example") // the first login
	judged := 1
	var mu sync.Mutex
	var storm sync.WaitGroup
	for n := range 160 {
		storm.Go(func() {
			a := w.Anyone().Post(auth+"login", fmt.Sprintf(`{"email": "n%d@customer.example", "password": "wrong"}`, n))
			if a.Status != 503 && a.Status != 401 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			if a.Status == 503 && a.Header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %v", a.Header)
			}
			mu.Lock()
			defer mu.Unlock()
			if a.Status == 401 {
				judged++
			}
		})
	}
	storm.Wait()
	if judged > 150 {
		t.Fatalf("only %d were shed", 161-judged)
	}
	a := w.Anyone().Post(auth+"login", `{"email": "eva@customer.example", "password": "a good password"}`).Want(200, "")
	if left := a.Header.Get("X-RateLimit-Remaining"); left != strconv.Itoa(limit-judged-1) {
		t.Errorf("%s left of %d after %d logins that were judged", left, limit, judged+1)
	}
}
