// Package email knows what an e-mail address is: which can get mail, and when
// two texts are one address.
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

// The longest that an address and the part before its @ may be, in bytes
// (RFC 5321, 4.5.3.1, and its erratum 1690).
const (
	maxAddress = 254
	maxLocal   = 64
)

// maxLooked bounds what is converted: what is longer is nobody's address, and
// the conversion of domains takes time that grows with the square of a label.
const maxLooked = 1024

// domains converts domains as browsers do (UTS #46, nontransitional), and
// refuses those that no host has.
var domains = idna.New(
	idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(true), idna.BidiRule(),
	idna.CheckJoiners(true), idna.CheckHyphens(false), idna.VerifyDNSLength(true),
)

// Clean returns an address as it is stored and shown: as it was entered, but
// trimmed and in NFC.
func Clean(address string) string {
	return norm.NFC.String(strings.TrimSpace(address))
}

// Key returns the one canonical form in which addresses are compared: trimmed,
// NFC, case folded, the domain in its ASCII form. It has an answer for every
// text, so that accounts whose address was accepted once are found: where the
// domain is none, its folded text stands. It folds the domain too: what was
// typed with a capital and what a browser made of it are one.
func Key(address string) string {
	address = Clean(address)
	if plain(address) || len(address) > maxLooked {
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

// Former returns the form in which addresses were compared before there was Key:
// trimmed, NFC, lower case.
func Former(address string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(strings.TrimSpace(address))))
}

// Mailbox returns an address as mail is sent to it: with the domain in its ASCII
// form, which every server takes. An address that cannot be converted is
// returned as it is.
func Mailbox(address string) string {
	address = Clean(address)
	local, domain, ok := cut(address)
	if !ok || plain(address) || len(address) > maxLooked {
		return address
	}
	ascii, err := domains.ToASCII(domain)
	if err != nil {
		return address
	}
	return local + "@" + ascii
}

// fold is the canonical caseless form of a text (Unicode, D145), composed. The
// lower case at its end is for Cherokee, whose two cases the library swaps.
func fold(text string) string {
	return norm.NFC.String(strings.ToLower(cases.Fold().String(norm.NFD.String(text))))
}

// plain reports whether an address is ASCII with no label of an international
// domain in it: then lower case is all there is to it.
func plain(address string) bool {
	for i := range len(address) {
		if address[i] >= utf8.RuneSelf {
			return false
		}
	}
	return !strings.Contains(strings.ToLower(address), "xn--")
}

// cut parts an address at its last @.
func cut(address string) (local, domain string, ok bool) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return "", "", false
	}
	return address[:at], address[at+1:], true
}

// What Check finds wrong with an address.
var (
	errForm      = errors.New("expected an e-mail address like eva@example.com")
	errText      = errors.New("expected an e-mail address of valid UTF-8 text")
	errLong      = errors.New("expected an e-mail address of at most 254 bytes, at most 64 of them before the @")
	errInvisible = errors.New("expected an e-mail address without spaces, control characters and characters that cannot be seen")
	errDots      = errors.New("expected an e-mail address with no dot at the beginning or end of what stands before the @, and no two in a row")
	errLocal     = errors.New("expected an e-mail address; before the @ stand letters, digits and .!#$%&'*+-/=?^_`{|}~")
	errDomain    = errors.New("expected an e-mail address; what stands after the @ is no domain")
)

// Check returns why no mail can reach an address, a sentence for who entered it;
// nil for an address that can get mail, as far as its form tells. Quoted local
// parts and addresses of hosts in brackets are not taken.
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

// isHost reports whether no label of a domain begins or ends with a hyphen, and
// whether it is no IPv4 address: its last label has more than digits in it.
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

// invisible reports whether a character shows nothing, or turns the direction
// of what follows.
func invisible(r rune) bool {
	return unicode.In(r, unicode.C, unicode.Z, unicode.White_Space, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector, unicode.Noncharacter_Code_Point)
}

// notLocal reports whether a character cannot stand before the @ (RFC 5321,
// Atom; RFC 6531 adds what is not ASCII).
func notLocal(r rune) bool {
	switch {
	case r >= utf8.RuneSelf:
		return r == utf8.RuneError || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune(".!#$%&'*+-/=?^_`{|}~", r)
}
