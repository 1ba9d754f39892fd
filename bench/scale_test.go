package main

import (
	"reflect"
	"testing"
)

func TestEachScaleMeasuresEverything(t *testing.T) {
	t.Parallel()
	for name, scale := range scales() {
		fields := reflect.ValueOf(scale)
		for i := range fields.NumField() {
			if fields.Field(i).IsZero() {
				t.Errorf("the scale %s has no %s", name, fields.Type().Field(i).Name)
			}
		}
	}
}
