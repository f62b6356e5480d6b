package server

import (
	"log"
	"strings"
	"sync"
	"time"
)

// complaints lets at most one line a second of the same kind through: a full
// disk must not fill the log as well.
type complaints struct {
	mu   sync.Mutex
	last time.Time
	held int
}

func (c *complaints) say(s *Server, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) < time.Second {
		c.held++
		return
	}
	s.log.Emit("server.overloaded", map[string]any{"error": err.Error(), "not_shown": c.held})
	c.last, c.held = time.Now(), 0
}

// netLog is where net/http says what went wrong with a connection.
func (s *Server) netLog() *log.Logger { return log.New(netLog{s}, "", 0) }

type netLog struct{ s *Server }

func (l netLog) Write(p []byte) (int, error) {
	l.s.log.Emit("server.connection", map[string]any{"error": strings.TrimSpace(string(p))})
	return len(p), nil
}
