package automation

import (
	"math"
	"strings"
	"time"

	"gatehouse/internal/clock"
)

// The functions that convert a value to the type of a field. Null stays null, so that
// what was not sent is not set.

// toNumber converts a text that is a number in JSON. A number keeps its digits.
func toNumber(_ *run, v any) (any, error) {
	switch given := v.(type) {
	case nil, float64, number:
		return v, nil
	case string:
		if made, ok := numberIn(given); ok {
			return made, nil
		}
		return nil, mistakef("number: expected a number like 19.90, found %s", show(given))
	}
	return nil, mistakef("number: expected a number or a text that is one, found %s", kindOf(v))
}

// maxNumber and maxTime bound a text that is read as a number or a time, in bytes.
const (
	maxNumber = 400
	maxTime   = 100
)

// numberIn reads a text that is a number in JSON.
func numberIn(text string) (any, bool) {
	if len(text) > maxNumber {
		return nil, false
	}
	made, _, err := parseJSON([]byte(strings.TrimSpace(text)), MaxWork)
	_, ok := double(made)
	return made, ok && err == nil
}

// timeIn reads a text that is a time with an offset or a date.
func timeIn(text string) (at time.Time, ok bool) {
	if len(text) > maxTime {
		return at, false
	}
	text = strings.TrimSpace(text)
	at, err := clock.ParseRFC3339(text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	at = at.UTC().Truncate(time.Microsecond)
	return at, err == nil && at.Year() >= 1 && at.Year() <= 9999
}

// toText converts a value as a template in a text does: lists and objects are JSON.
func toText(r *run, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	return stringOf(r, v)
}

// The times that a field of type date or datetime can have, in seconds since 1970.
var (
	firstSecond = float64(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	lastSecond  = float64(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix())
)

// toTime returns a function that converts seconds since 1970, a date like 2026-11-23 or
// a time with an offset like 2026-11-23T09:30:00+01:00. What it makes is in UTC.
func toTime(name string, format func(time.Time) string) func(*run, any) (any, error) {
	return func(_ *run, v any) (any, error) {
		if v == nil {
			return nil, nil
		}
		seconds, isNumber := double(v)
		switch {
		case isNumber && seconds >= firstSecond && seconds <= lastSecond:
			whole := math.Floor(seconds)
			micros := math.Round((seconds - whole) * 1e6)
			return format(time.Unix(int64(whole), int64(micros)*1000).UTC()), nil
		case isNumber:
			return nil, mistakef("%s: expected seconds since 1970, of milliseconds x / 1000, found %.16g, which is beyond the year 9999 or before the year 1", name, seconds)
		}
		if given, ok := v.(string); ok {
			if at, ok := timeIn(given); ok {
				return format(at), nil
			}
			return nil, mistakef("%s: expected a time like 2026-11-23T09:30:00Z or a date like 2026-11-23, found %s", name, show(given))
		}
		return nil, mistakef("%s: expected seconds since 1970 or a text, found %s", name, kindOf(v))
	}
}
