package policy

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
)

// Duration is a time span. In JSON it is a text with a unit, such as "5m". A number without a unit is refused, because
// some harnesses read it as minutes, others as seconds or milliseconds.
type Duration time.Duration

// UnmarshalJSON reads a text with a unit.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return db.Invalid(`%s is no time span: write it with its unit, such as "5m" or "30s"`, db.Short(string(raw)))
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 {
		return db.Invalid(`%q is no time span: write it with its unit, such as "5m" or "30s"`, db.Short(text))
	}
	*d = Duration(span)
	return nil
}

// MarshalJSON writes the span with its unit.
func (d Duration) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", time.Duration(d)), nil }
