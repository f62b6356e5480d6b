package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthAsksTheServer(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
	}))
	defer s.Close()
	addr := strings.TrimPrefix(s.URL, "http://")
	health := func(ops string) (int, string) {
		var words bytes.Buffer
		code := run(t.Context(), []string{"health", "--ops-listen", ops}, func(string) string { return "" }, nil, &words, &words)
		return code, words.String()
	}
	if code, words := health(addr); code != 0 || words != "" {
		t.Errorf("a server that is alive: %d %s", code, words)
	}
	if code, words := health("0.0.0.0:" + strings.Split(addr, ":")[1]); code != 0 {
		t.Errorf("a server that listens everywhere: %d %s", code, words)
	}
	status = http.StatusInternalServerError
	if code, words := health(addr); code != 1 || !strings.Contains(words, "500") {
		t.Errorf("a server that is not: %d %s", code, words)
	}
	s.Close()
	if code, _ := health(addr); code != 1 {
		t.Errorf("no server: %d", code)
	}
	if code, _ := health(""); code != 2 {
		t.Errorf("no address: %d", code)
	}
}
