package web

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/net/idna"
)

// Allowed says which addresses may be read. The zero value allows none.
type Allowed struct {
	hosts    []string // example.com, or .example.com for all below it
	networks []netip.Prefix
}

// NewAllowed returns what a list allows. An entry is a host (docs.example.com), all hosts below a domain
// (*.example.com), an address (10.1.2.3) or a network (10.1.0.0/16).
func NewAllowed(entries []string) (a Allowed, err error) {
	for _, entry := range entries {
		entry = strings.TrimSpace(entry)
		if network, err := netip.ParsePrefix(entry); err == nil {
			a.networks = append(a.networks, network.Masked())
			continue
		}
		if ip, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil && ip.Zone() == "" {
			a.networks = append(a.networks, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
			continue
		}
		name, isDomain := strings.CutPrefix(entry, "*.")
		host, err := hostOf(name)
		if err != nil || strings.ContainsAny(host, "*/:@[] ?#") {
			return Allowed{}, fmt.Errorf("'%s' is no host (docs.example.com, *.example.com), address (10.1.2.3) or network "+
				"(10.1.0.0/16)", entry)
		}
		if isDomain {
			host = "." + host
		}
		a.hosts = append(a.hosts, host)
	}
	return a, nil
}

// IsEmpty reports whether nothing is allowed.
func (a Allowed) IsEmpty() bool { return len(a.hosts)+len(a.networks) == 0 }

// RefusedError says that an address is not allowed. Entry is what would allow it.
type RefusedError struct{ Host, Entry string }

func (e *RefusedError) Error() string {
	if e.Host == e.Entry {
		return e.Host + " is not allowed"
	}
	return fmt.Sprintf("%s has the address %s, which is not public and not allowed", e.Host, e.Entry)
}

// check returns an error for a host that cannot be allowed, whatever address it has.
func (a Allowed) check(u *url.URL) error {
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return a.checkAddress(host, ip)
	}
	if !a.names(host) && len(a.networks) == 0 {
		return &RefusedError{host, host}
	}
	return nil
}

// control returns the check of an address to which a connection to a host is about to be made.
func (a Allowed) control(host string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return a.checkAddress(host, at.Addr())
	}
}

// checkAddress returns an error unless an address is in a network that is named, or is public and its host is named.
func (a Allowed) checkAddress(host string, ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	switch {
	case slices.ContainsFunc(a.networks, func(n netip.Prefix) bool { return n.Contains(ip) }):
		return nil
	case !a.names(host):
		return &RefusedError{host, host}
	case !isPublic(ip):
		return &RefusedError{host, ip.String()}
	}
	return nil
}

// names reports whether a host is named.
func (a Allowed) names(host string) bool {
	return slices.ContainsFunc(a.hosts, func(entry string) bool {
		return host == entry || strings.HasPrefix(entry, ".") && strings.HasSuffix(host, entry)
	})
}

// hostOf returns a host's name in ASCII and lower case, without the dot at its end.
func hostOf(name string) (string, error) {
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
	if err == nil && host == "" {
		err = errors.New("it is empty")
	}
	return host, err
}

// special are networks of no public host, besides those that netip knows (IANA's registries of special-purpose
// addresses). Some of version 6 lead to an address of version 4 that they contain.
var special = prefixes("0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 " +
	"198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20")

var globalUnicast = netip.MustParsePrefix("2000::/3") // of version 6

func prefixes(list string) (all []netip.Prefix) {
	for text := range strings.FieldsSeq(list) {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func isPublic(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && (ip.Is4() || globalUnicast.Contains(ip)) &&
		!slices.ContainsFunc(special, func(n netip.Prefix) bool { return n.Contains(ip) })
}
