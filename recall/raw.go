package recall

import (
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
)

// cleanRaws redacts and cleans the texts in the JSON of a part.
func cleanRaws(p *Part, r *redact.Redactor) (err error) {
	p.Images = slices.Clone(p.Images)
	raws := []*json.RawMessage{&p.Source, &p.Summary}
	for i := range p.Images {
		raws = append(raws, &p.Images[i])
	}
	for _, raw := range raws {
		if *raw, err = cleanedRaw(*raw, r); err != nil {
			return err
		}
	}
	return nil
}

func cleanedRaw(raw json.RawMessage, r *redact.Redactor) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, db.Invalid("a part's source or summary is not JSON")
	}
	return json.Marshal(cleanedValue(value, r))
}

// imageData is the field of an image's source that is the image itself: among so many letters chance would find secrets.
const imageData = "data"

func cleanedValue(value any, r *redact.Redactor) any {
	switch v := value.(type) {
	case string:
		return r.Redact(db.Clean(v))
	case []any:
		for i := range v {
			v[i] = cleanedValue(v[i], r)
		}
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, item := range v {
			if data, is := item.(string); is && name == imageData {
				object[name] = db.Clean(data)
			} else {
				object[db.Clean(name)] = cleanedValue(item, r)
			}
		}
		return object
	}
	return value
}
