package metrics

import (
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
)

// Names returns the names of all metrics, including metrics that have counted nothing yet.
func (m *Metrics) Names() (names []string) {
	described := make(chan *prometheus.Desc)
	go func() {
		m.registry.Describe(described)
		close(described)
	}()
	for d := range described {
		if name := quotedName.FindStringSubmatch(d.String()); name != nil {
			names = append(names, name[1])
		}
	}
	return names
}

// quotedName finds the name in a description's text, because descriptions offer no other access to it.
var quotedName = regexp.MustCompile(`fqName: "([^"]+)"`)
