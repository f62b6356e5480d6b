package user

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a user's own texts, which registration, the API, manifests and
// commands share.
const (
	maxName   = 200 // characters
	maxLocale = 35  // bytes: the longest language tag that every program must take
)

// CheckName returns what is wrong with a user's name, or nil.
func CheckName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case strings.TrimSpace(name) == "" || n > maxName:
		return fmt.Errorf("expected 1 to %d characters", maxName)
	case !plain(name):
		return errors.New("expected text without control characters")
	}
	return nil
}

// CheckLocale returns what is wrong with a user's locale, or nil. A user without one
// has "".
func CheckLocale(locale string) error {
	if len(locale) > maxLocale || !plain(locale) {
		return fmt.Errorf("expected a language tag like en or de-AT, at most %d bytes", maxLocale)
	}
	return nil
}

func plain(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }
