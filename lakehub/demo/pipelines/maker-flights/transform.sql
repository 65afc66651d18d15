SELECT
  w.flight_date,
  coalesce(w.manufacturer, 'unknown') AS manufacturer,
  count(*) AS flights,
  count(w.arr_delay) AS arrivals,
  sum(w.arr_delay) AS delay_minutes
FROM <SRC> w
GROUP BY w.flight_date, coalesce(w.manufacturer, 'unknown')
