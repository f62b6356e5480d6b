package server

import (
	"log"
	"strings"
	"sync"
	"time"
)

// throttledLog logs at most one overload a second: a full disk must not fill
// the log as well.
type throttledLog struct {
	mu   sync.Mutex
	last time.Time
	held int
}

func (l *throttledLog) log(s *Server, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last) < time.Second {
		l.held++
		return
	}
	s.log.Emit("server.overloaded", map[string]any{"error": err.Error(), "not_shown": l.held})
	l.last, l.held = time.Now(), 0
}

// netLog returns the logger that net/http reports connection errors to.
func (s *Server) netLog() *log.Logger { return log.New(netLog{s}, "", 0) }

type netLog struct{ s *Server }

func (l netLog) Write(p []byte) (int, error) {
	l.s.log.Emit("server.connection", map[string]any{"error": strings.TrimSpace(string(p))})
	return len(p), nil
}
