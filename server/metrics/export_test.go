package metrics

import (
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
)

// Names returns the names of all metrics that are read, also of those that count nothing yet.
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

// quotedName finds the name in the text of a description, which has no other way to it.
var quotedName = regexp.MustCompile(`fqName: "([^"]+)"`)
