package audit

import "time"

// How long one request of the console may search. What it has not found until
// then it leaves to the next request, and says so.
const (
	searchFor = 150 * time.Millisecond
	countFor  = 400 * time.Millisecond
)
