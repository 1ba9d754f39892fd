package filter

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/loci-memory/loci/db"
)

// value is a scalar of a filter.
type value struct {
	json        string // as JSON
	text        string // of a string
	kind        string // string, number, boolean or null
	first, last time.Time
	isTime      bool // first and last are the moments that an ISO date or time names
}

// scalar reads a scalar. Strings that are ISO dates or times are times, too; without an offset, they are in zone.
func scalar(at string, raw json.RawMessage, zone *time.Location) (v value, err error) {
	switch raw[0] {
	case '"':
		v.kind = "string"
		if err := json.Unmarshal(raw, &v.text); err != nil {
			return v, invalid(at, "the text cannot be read")
		}
		v.text = db.Clean(v.text)
		v.first, v.last, v.isTime = db.Moments(v.text, zone)
		text, err := encoded(v.text)
		v.json = text
		return v, err
	case 't', 'f':
		v.kind = "boolean"
	case 'n':
		v.kind = "null"
	case '[', '{':
		return v, invalid(at, "a text, a number, true, false or null is compared here, not a list or an object")
	default:
		v.kind = "number"
		if _, err := strconv.ParseFloat(string(raw), 64); err != nil || len(raw) > maxDigits {
			return v, invalid(at, "the number is too long: it may have "+strconv.Itoa(maxDigits)+" characters")
		}
	}
	v.json = string(raw)
	return v, nil
}

// encoded returns a text as JSON, with its characters as they are.
func encoded(text string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(text)
	return string(bytes.TrimSpace(b.Bytes())), err
}

// check returns an error if a value does not fit a field.
func (v value) check(at string, k Kind, op string) error {
	ordered := op == "gt" || op == "gte" || op == "lt" || op == "lte"
	switch {
	case op == "exists" && v.kind != "boolean":
		return invalid(at, "exists takes true or false")
	case op == "exists", v.kind == "null" && (op == "eq" || op == "ne"):
		return nil
	case v.kind == "null":
		return invalid(at, "null is compared by eq and ne alone; exists says whether there is a value")
	case (k == Text || k == Texts) && v.kind != "string":
		return invalid(at, "the field is "+string(k)+", and is compared with a text, not with "+db.Short(v.json))
	case k == Number && v.kind != "number":
		return invalid(at, "the field is a number, and is compared with one, not with "+db.Short(v.json))
	case k == Time && !v.isTime:
		return invalid(at, "the field is a time, and is compared with one in ISO 8601, such as 2026-01-31 or "+
			"2026-01-31T12:00:00Z, not with "+db.Short(v.json))
	case ordered && v.kind == "boolean":
		return invalid(at, op+" compares numbers, dates and texts, not "+v.json)
	case op == "prefix" && v.kind != "string":
		return invalid(at, "prefix takes a text, not "+db.Short(v.json))
	}
	return nil
}
