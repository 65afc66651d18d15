SELECT
  f.flight_date,
  f.carrier,
  max(a.name) AS airline,
  count(*) AS flights,
  count_if(f.status = 'cancelled') AS cancelled,
  sum(CASE WHEN f.status = 'cancelled' THEN 0 ELSE f.distance END) AS miles,
  sum(CASE WHEN f.status = 'cancelled' THEN 0 ELSE f.distance END) * 0.13 AS earnings
FROM <SRC> f
LEFT JOIN airlines a ON f.carrier = a.carrier
GROUP BY f.flight_date, f.carrier
