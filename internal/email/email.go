// Package email checks e-mail addresses, and decides when two texts are the same
// address.
package email

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// The longest address and the longest part before its @, in bytes (RFC 5321,
// 4.5.3.1, and its erratum 1690).
const (
	maxAddress = 254
	maxLocal   = 64
)

// maxConverted bounds the addresses that are converted. Nobody has a longer one, and
// the time to convert a domain grows with the square of its labels.
const maxConverted = 1024

// domains converts domains as browsers do (UTS #46, nontransitional), and returns an
// error for those that no host can have.
var domains = idna.New(
	idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(true), idna.BidiRule(),
	idna.CheckJoiners(true), idna.CheckHyphens(false), idna.VerifyDNSLength(true),
)

// Clean returns an address in the form that is stored and shown: as it was entered,
// but trimmed and in NFC.
func Clean(address string) string {
	return norm.NFC.String(strings.TrimSpace(address))
}

// Key returns the canonical form in which addresses are compared: trimmed, NFC, case
// folded, the domain in its ASCII form. It accepts every text, so that an account is
// found whose address would not be accepted today; an invalid domain is only folded.
// Key folds the domain before it converts it, so that a domain typed with a capital
// letter equals the form that a browser makes of it.
func Key(address string) string {
	address = Clean(address)
	if plain(address) || len(address) > maxConverted {
		return strings.ToLower(address)
	}
	local, domain, ok := cut(address)
	if !ok {
		return fold(address)
	}
	if seen, err := domains.ToUnicode(domain); err == nil {
		domain = seen
	}
	domain = fold(domain)
	if ascii, err := domains.ToASCII(domain); err == nil {
		domain = ascii
	}
	return fold(local) + "@" + domain
}

// Former returns the form in which addresses were compared before Key existed:
// trimmed, NFC, lower case.
func Former(address string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(strings.TrimSpace(address))))
}

// Mailbox returns an address in the form that mail is sent to: with the domain in its
// ASCII form, which every mail server accepts. It returns an address that cannot be
// converted unchanged.
func Mailbox(address string) string {
	address = Clean(address)
	local, domain, ok := cut(address)
	if !ok || plain(address) || len(address) > maxConverted {
		return address
	}
	ascii, err := domains.ToASCII(domain)
	if err != nil {
		return address
	}
	return local + "@" + ascii
}

// fold returns the canonical caseless form of a text (Unicode, D145), composed. The
// final ToLower is for Cherokee, whose two cases the library swaps.
func fold(text string) string {
	return norm.NFC.String(strings.ToLower(cases.Fold().String(norm.NFD.String(text))))
}

// plain reports whether an address is ASCII without a label of an international
// domain, so that lower case is its canonical form.
func plain(address string) bool {
	for i := range len(address) {
		if address[i] >= utf8.RuneSelf {
			return false
		}
	}
	return !strings.Contains(strings.ToLower(address), "xn--")
}

// cut splits an address at its last @.
func cut(address string) (local, domain string, ok bool) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return "", "", false
	}
	return address[:at], address[at+1:], true
}

// The errors of Check.
var (
	errForm      = errors.New("expected an e-mail address like eva@example.com")
	errText      = errors.New("expected an e-mail address of valid UTF-8 text")
	errLong      = errors.New("expected an e-mail address of at most 254 bytes, at most 64 of them before the @")
	errInvisible = errors.New("expected an e-mail address without spaces, control characters and invisible characters")
	errDots      = errors.New("expected an e-mail address whose part before the @ does not begin or end with a dot, and has no two dots in a row")
	errLocal     = errors.New("expected an e-mail address; the part before the @ has letters, digits and .!#$%&'*+-/=?^_`{|}~")
	errDomain    = errors.New("expected an e-mail address; the part after the @ is not a domain")
)

// Check returns nil if an address has a form that mail can be sent to, or else an error
// for the person who entered it. It does not accept quoted local parts and
// bracketed host addresses.
func Check(address string) error {
	if !utf8.ValidString(address) {
		return errText
	}
	address = Clean(address)
	if len(address) > maxAddress {
		return errLong
	}
	if strings.ContainsFunc(address, invisible) {
		return errInvisible
	}
	local, domain, ok := cut(address)
	if !ok || local == "" || domain == "" || strings.Contains(local, "@") {
		return errForm
	}
	if len(local) > maxLocal {
		return errLong
	}
	if strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") {
		return errDots
	}
	if strings.ContainsFunc(local, notLocal) {
		return errLocal
	}
	ascii, err := domains.ToASCII(domain)
	if err != nil || !isHost(ascii) {
		return errDomain
	}
	if seen, err := domains.ToUnicode(ascii); err != nil || strings.ContainsFunc(seen, invisible) {
		return errDomain
	}
	if len(local)+1+len(ascii) > maxAddress {
		return errLong
	}
	return nil
}

// isHost reports whether a domain can be a host's: none of its labels begins or ends
// with a hyphen, and its last label is not a number, as in an IPv4 address.
func isHost(domain string) bool {
	last := ""
	for label := range strings.SplitSeq(domain, ".") {
		if strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
		last = label
	}
	return strings.Trim(last, "0123456789") != ""
}

// invisible reports whether a character is not visible, or changes the direction of
// the text after it.
func invisible(r rune) bool {
	return unicode.In(r, unicode.C, unicode.Z, unicode.White_Space, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector, unicode.Noncharacter_Code_Point)
}

// notLocal reports whether a character is not allowed before the @ (RFC 5321, Atom;
// RFC 6531 allows characters outside ASCII).
func notLocal(r rune) bool {
	switch {
	case r >= utf8.RuneSelf:
		return r == utf8.RuneError || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune(".!#$%&'*+-/=?^_`{|}~", r)
}
