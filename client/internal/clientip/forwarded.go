package clientip

import (
	"net/netip"
	"strings"
)

// Forwarded reads whom one element of Forwarded (RFC 7239) names; the zero Addr if
// that is nobody, hidden, or the element is not exactly as the RFC has it.
//
// Elements are cut at commas from the right, whatever is quoted: what an attacker sent
// stands left of what the proxy has added, and cannot reach into it with an open quote.
// An element with a comma in quotes is torn so, and both parts have half of the quotes:
// neither is read.
func Forwarded(element string) netip.Addr {
	var node string
	for more := true; more; {
		var name, value string
		var ok bool
		if name, element, ok = token(element); !ok || !strings.HasPrefix(element, "=") {
			return netip.Addr{}
		}
		if value, element, ok = tokenOrText(element[1:]); !ok {
			return netip.Addr{}
		}
		if strings.EqualFold(name, "for") {
			if node != "" || value == "" {
				return netip.Addr{}
			}
			node = value
		}
		if more = strings.HasPrefix(element, ";"); more {
			element = element[1:]
		} else if element != "" {
			return netip.Addr{}
		}
	}
	return Parse(node)
}

// token cuts a token (RFC 9110) off the front of s.
func token(s string) (token, rest string, ok bool) {
	n := 0
	for n < len(s) && isTokenByte(s[n]) {
		n++
	}
	return s[:n], s[n:], n > 0
}

func isTokenByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// tokenOrText cuts a token or a quoted string off the front of s. One with escapes is
// not ok: no address, host or scheme needs them.
func tokenOrText(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return token(s)
	}
	i := strings.IndexAny(s[1:], `"\`)
	if i < 0 || s[1+i] == '\\' {
		return "", "", false
	}
	return s[1 : 1+i], s[2+i:], true
}
