package admin

import "time"

// SetPatience sets how long a request waits for its change.
func (s *Service) SetPatience(d time.Duration) { s.patience = d }
